import { randomBytes } from 'node:crypto';

/** Signing secrets of webhooks: `whsec_` and the base64 of 24 random bytes. */

const prefix = 'whsec_';
const keyBytes = 24;

/** 24 bytes fill 32 base64 characters without padding, so a secret has one spelling. */
const form = /^whsec_[A-Za-z0-9+/]{32}$/;

/** Returns a new secret. `random` replaces the source of its bytes in tests. */
export function generateSecret(random: (size: number) => Buffer = randomBytes): string {
  return prefix + random(keyBytes).toString('base64');
}

/**
 * Returns whether a text has the form of a secret; one that is cut short, quoted or padded has not.
 */
export function isSecret(text: string): boolean {
  return form.test(text);
}

/**
 * Returns the 24 bytes behind the prefix, the key of the Standard Webhooks signature.
 *
 * @throws TypeError when the text is no secret; Node's decoder would skip what it cannot read and
 * return another key.
 */
export function getSecretBytes(secret: string): Buffer {
  if (!isSecret(secret))
    throw new TypeError('a webhook secret is whsec_ and 32 base64 characters, and this one is not');
  return Buffer.from(secret.slice(prefix.length), 'base64');
}
