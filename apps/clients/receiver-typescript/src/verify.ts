import { createHmac, timingSafeEqual } from 'node:crypto';

/** Finds a header by its lower-case name. */
export type Headers = (name: string) => string | null | undefined;

/** A delivery that is not genuine, or no event: answer 400. */
export class InvalidDeliveryError extends Error {}

const toleranceSeconds = 300;

/**
 * Checks the signature of a delivery by Standard Webhooks, with any of the secrets.
 *
 * @param body - the bytes as they came, before any parsing.
 *
 * @throws InvalidDeliveryError when it is older than five minutes, from the future, or by none of the secrets.
 *
 * @throws TypeError when a secret is none: it contains a sentence, and no secret.
 */
export function verify(headers: Headers, body: Uint8Array, secrets: readonly string[], nowMs = Date.now()): void {
  const [id, time, given] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => headers(name) ?? '');
  if (!/^\d{1,12}$/.test(time ?? '') || Math.abs(nowMs / 1_000 - Number(time)) > toleranceSeconds)
    throw new InvalidDeliveryError('webhook-timestamp is more than five minutes from this clock.');
  const signatures = (given ?? '')
    .split(' ')
    .filter((each) => each.startsWith('v1,'))
    .map((each) => Buffer.from(each.slice(3), 'base64'));
  const isGenuine = secrets.map(readKey).some((key) => {
    const expected = createHmac('sha256', key).update(`${id}.${time}.`).update(body).digest();
    return signatures.some((each) => each.length === expected.length && timingSafeEqual(each, expected));
  });
  if (!isGenuine) throw new InvalidDeliveryError('webhook-signature is by none of the secrets.');
}

/** Returns the key of a secret. White space around it is ignored. */
function readKey(secret: string): Buffer {
  if (secret.includes('\ufeff')) throw new TypeError('The secret has a byte order mark: save it without one.');
  if (/["'`]/.test(secret)) throw new TypeError('The secret has quotes: remove them.');
  const [, key] = /^whsec_([A-Za-z0-9+/]{32})$/.exec(secret.trim()) ?? [];
  if (key === undefined) throw new TypeError('The secret is incomplete: copy all of it, from whsec_ to its end.');
  return Buffer.from(key, 'base64');
}
