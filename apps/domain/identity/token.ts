import { createHash, randomBytes } from 'node:crypto';

/**
 * Tokens of sessions and one-time links: 32 random bytes (256 bits) in base64url; the database
 * holds their SHA-256 only.
 */

const form = /^[A-Za-z0-9_-]{43}$/;

/** A new token. Hand it out once, store its hash. */
export function generateToken(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * The stored form, 32 bytes; null for a text that is no token, so that it need not be looked up.
 */
export function findTokenHash(token: string): Buffer | null {
  return form.test(token) ? hashOf(token) : null;
}

/**
 * SHA-256: enough for what is random, and has 112 bits or more (ASVS 6.5.2, 11.4). Never for a
 * password.
 */
export function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
