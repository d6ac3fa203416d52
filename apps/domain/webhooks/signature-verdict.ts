/**
 * Whether a receiver verifies what it gets. `verified` takes both: a 2xx for what is signed correctly, and any other status for what is not. Where no status came,
 * nothing is proven. Source: design, section 6.
 */
export type SignatureVerdict = 'verified' | 'accepts_bad_signatures' | 'refuses_good_signatures' | 'no_answer';

/** Each verdict in a sentence, with what its owner does about it. */
export const signatureVerdictSentences: Record<SignatureVerdict, string> = {
  verified: 'The receiver verifies: it accepted a correctly signed event and refused a badly signed one.',
  accepts_bad_signatures:
    'The receiver accepted a badly signed event, so anybody who knows its URL can make it believe anything: verify the signature before answering, and answer 400 when it is wrong.',
  refuses_good_signatures:
    'The receiver refused a correctly signed event: see that it has this webhook’s secret, verifies the body’s bytes before parsing them, and has the right time.',
  no_answer: 'No status came, so nothing is proven: mend what the cause says, and check again.',
};

/** How a receiver took a post. `status` null: none came. */
interface Taken {
  delivered: boolean;
  status: number | null;
}

/** The verdict on how both were taken; `bad` null when it was not sent, because the good one was not accepted and that settles it. */
export function judgeSignatures(good: Taken, bad: Taken | null): SignatureVerdict {
  if (good.status === null) return 'no_answer';
  if (!good.delivered) return 'refuses_good_signatures';
  if (bad === null || bad.status === null) return 'no_answer';
  return bad.delivered ? 'accepts_bad_signatures' : 'verified';
}
