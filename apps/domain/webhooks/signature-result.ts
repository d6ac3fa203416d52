import type { SignatureResult } from './webhook.entity.ts';

export type { SignatureResult };

/** Each result in a sentence, with what its owner does about it. */
export const signatureResultSentences: Record<SignatureResult, string> = {
  verified: 'The receiver verifies signatures. It accepted a correctly signed event and rejected a wrongly signed one.',
  accepts_bad_signatures:
    'The receiver accepted a wrongly signed event. Anyone who knows its URL can send it false events. ' +
    'Verify the signature before processing an event, and return 400 if it is wrong.',
  rejects_good_signatures:
    'The receiver rejected a correctly signed event. Check that it has this webhook’s secret, verifies the raw body ' +
    'before parsing, and has the correct time.',
  no_response:
    'The result is inconclusive: there was no response, or a status such as 429, 500 or a redirect. ' +
    'Fix the cause and check again.',
};

/** Statuses of the 4xx that say that it comes at a bad time, and nothing of what came. */
const badTimes: ReadonlySet<number> = new Set([408, 425, 429]);

/** Returns whether a status rejects what was sent; that of a busy or broken receiver does not. */
export const isRejection = (status: number | null): boolean =>
  status !== null && status >= 400 && status < 500 && !badTimes.has(status);

/** How a receiver answered a test event. `status` null: none came. */
interface TestPost {
  delivered: boolean;
  status: number | null;
}

/** Returns the result; `bad` null: not sent, because the good event was not accepted. */
export function getSignatureResult(good: TestPost, bad: TestPost | null): SignatureResult {
  if (!good.delivered) return isRejection(good.status) ? 'rejects_good_signatures' : 'no_response';
  if (bad === null) return 'no_response';
  if (bad.delivered) return 'accepts_bad_signatures';
  return isRejection(bad.status) ? 'verified' : 'no_response';
}
