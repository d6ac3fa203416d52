import { isSecret } from '../secret.ts';
import type { Read } from './captured-headers.ts';

/** The checks of a captured delivery that need no key, each with a sentence for developers. */

/** The checks, in this order. */
export type CheckName =
  /** Each given secret is `whsec_` and 32 base64 characters. */
  | 'secret_form'
  /** `Service-Signature` is there and well formed. */
  | 'service_signature_header'
  /** `webhook-id`, `webhook-timestamp` and `webhook-signature` are there and well formed. */
  | 'standard_headers'
  /** Both forms have the same time. */
  | 'timestamps_agree'
  /** The time is near the current one: a replayed delivery is rejected by its age. */
  | 'timestamp_within_tolerance'
  /** The body is the JSON of an event whose `id` is `webhook-id`. */
  | 'id_matches_body'
  /** A given secret gives a signature of `Service-Signature` for this time and body. */
  | 'service_signature'
  /** A given secret gives a signature of `webhook-signature` for this id, time and body. */
  | 'standard_signature';

/** The result of one check; `explanation` is a sentence for a developer and contains no secret. */
export interface Check {
  name: CheckName;
  ok: boolean;
  explanation: string;
}

/** Checks that each secret has the service's form. */
export function checkSecrets(secrets: readonly string[]): Check {
  const name = 'secret_form';
  if (secrets.length === 0)
    return { name, ok: false, explanation: 'No secret was given: give the one shown when the webhook was created.' };
  const index = secrets.findIndex((secret) => !isSecret(secret));
  if (index < 0)
    return { name, ok: true, explanation: `${formatCount(secrets.length, 'secret')} in the correct form.` };
  const which = `Secret ${index + 1} of ${secrets.length} ${describeSecretProblem(secrets[index] ?? '')}`;
  return { name, ok: false, explanation: `${which}: copy the whole secret again, from whsec_ to its end.` };
}

/** Names common mistakes in a secret without showing the secret: `has quotes around it`. */
export function describeSecretProblem(secret: string): string {
  if (secret.includes('\ufeff')) return 'has a byte order mark';
  if (isSecret(secret.trim())) return 'has white space around it';
  if (isSecret(secret.trim().replace(/^(["'])(.*)\1$/, '$2'))) return 'has quotes around it';
  if (!secret.startsWith('whsec_')) return 'does not begin with whsec_';
  const tail = secret.slice('whsec_'.length);
  if (/[^A-Za-z0-9+/]/.test(tail)) return 'has a character after whsec_ that is not base64 (A–Z, a–z, 0–9, +, /)';
  return `has ${tail.length} characters after whsec_ instead of 32`;
}

/** Checks that one form's headers can be read, and counts their signatures. */
export function checkHeader(name: CheckName, read: Read<{ macs: Buffer[] }>): Check {
  if ('problem' in read) {
    const explanation =
      `This form cannot be read, because ${read.problem}: capture the request as it was sent, before a ` +
      'proxy or framework drops or rewrites headers.';
    return { name, ok: false, explanation };
  }
  const count = read.value.macs.length;
  const rotation = count > 1 ? '; more than one means that a secret is being rotated, and any of them may match' : '';
  return { name, ok: true, explanation: `Well formed, with ${formatCount(count, 'signature')}${rotation}.` };
}

/** Checks that both forms have the same time. */
export function checkTimesAgree([service, standard]: number[]): Check {
  const ok = service === standard;
  const explanation = ok
    ? 'Both forms have the same time.'
    : `Service-Signature has t=${service} and webhook-timestamp ${standard}: one header belongs to another ` +
      'attempt, or was changed.';
  return { name: 'timestamps_agree', ok, explanation };
}

/** Checks that the time is near `now`. */
export function checkAge(timestampSeconds: number, now: Date, toleranceSeconds: number): Check {
  const ageSeconds = Math.floor(now.getTime() / 1000) - timestampSeconds;
  const ok = Math.abs(ageSeconds) <= toleranceSeconds;
  const distance = `${Math.abs(ageSeconds)} s ${ageSeconds < 0 ? 'ahead of' : 'behind'} this clock`;
  const remedy =
    ageSeconds < 0
      ? "set this machine's clock (NTP)"
      : 'for a delivery captured earlier give a larger tolerance; for a new one set the clock (NTP), ' +
        'and verify before queueing the request';
  const explanation = ok
    ? `Signed ${distance}, within ${toleranceSeconds} s.`
    : `Signed ${distance}, and ${toleranceSeconds} s are allowed: ${remedy}.`;
  return { name: 'timestamp_within_tolerance', ok, explanation };
}

/** Checks that `webhook-id` is the body's own id; the Stripe form covers only the body. */
export function checkId(id: string, body: Buffer): Check {
  const name = 'id_matches_body';
  const inBody = findBodyId(body);
  if (inBody === id) return { name, ok: true, explanation: "webhook-id is the body's id: use it to ignore repeats." };
  const explanation =
    inBody === null
      ? 'The body is not the JSON of an event with an id: capture all its bytes, before any parsing.'
      : "webhook-id is not the body's id: the headers belong to another delivery, or were changed.";
  return { name, ok: false, explanation };
}

function findBodyId(body: Buffer): string | null {
  try {
    const event: unknown = JSON.parse(body.toString('utf8'));
    return typeof event === 'object' && event !== null && 'id' in event && typeof event.id === 'string'
      ? event.id
      : null;
  } catch {
    return null;
  }
}

function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
