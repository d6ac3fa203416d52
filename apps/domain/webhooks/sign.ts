import { createHmac } from 'node:crypto';
import { getSecretBytes } from './secret.ts';

/**
 * The signature headers of one attempt.
 *
 * Two forms, so that a receiver verifies with a library that it has already: `Service-Signature`
 * with Stripe's, `webhook-*` with those of Standard Webhooks and Svix. Both cover the same body
 * bytes; only the second covers the id, which the body holds too.
 */

/** What one attempt signs. */
export interface Signable {
  /** The event's id, the same on every retry. */
  id: string;
  /** Time of this attempt, whole seconds since 1970; each retry is signed again. */
  timestampSeconds: number;
  /** The stored body: its bytes, or its text, which is sent as UTF-8. */
  body: Buffer | string;
}

/**
 * Both forms' headers by name, one signature for each secret in the order given (newest first), so
 * that a receiver may hold any of them.
 *
 * @throws TypeError when a secret, or what is signed, is malformed: an unsigned or ambiguous
 * delivery must not leave. It never names a value.
 */
export function signatureHeaders(input: Signable & { secrets: readonly string[] }): Record<string, string> {
  const { secrets, ...signable } = input;
  requireSignable(signable, secrets);
  const { id, timestampSeconds } = signable;
  const service = secrets.map((secret) => `,v1=${serviceMac(secret, signable).toString('hex')}`);
  const standard = secrets.map((secret) => `v1,${standardMac(getSecretBytes(secret), signable).toString('base64')}`);
  return {
    'Service-Signature': `t=${timestampSeconds}${service.join('')}`,
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': standard.join(' '),
  };
}

/** HMAC-SHA-256 of `t.body` under the secret's own characters, for `Service-Signature`. */
export function serviceMac(secret: string, { timestampSeconds, body }: Omit<Signable, 'id'>): Buffer {
  return createHmac('sha256', secret).update(`${timestampSeconds}.`).update(body).digest();
}

/** HMAC-SHA-256 of `id.t.body` under the secret's decoded bytes, for `webhook-signature`. */
export function standardMac(key: Buffer, { id, timestampSeconds, body }: Signable): Buffer {
  return createHmac('sha256', key).update(`${id}.${timestampSeconds}.`).update(body).digest();
}

function requireSignable({ id, timestampSeconds }: Signable, secrets: readonly string[]): void {
  if (secrets.length === 0) throw new TypeError('a delivery is signed with at least one secret');
  if (!Number.isSafeInteger(timestampSeconds) || timestampSeconds < 0) {
    throw new TypeError('a delivery is signed at a whole number of seconds since 1970');
  }
  // The id stands before a dot: one with a dot in it could be read as another id and time.
  if (!/^[\w-]+$/.test(id)) throw new TypeError('a delivery is signed for an id of letters, digits, _ and -');
}
