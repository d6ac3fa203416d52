import { createHash, randomBytes } from 'node:crypto';

/** Tokens of sessions and links: 32 random bytes in base64url; the database holds their SHA-256. */

const form = /^[A-Za-z0-9_-]{43}$/;

/** Returns a new token, which is handed out once; its hash is stored. */
export function generateToken(): string {
  return randomBytes(32).toString('base64url');
}

/** Returns the stored form, 32 bytes, or null for a text that is not a token. */
export function findTokenHash(token: string): Buffer | null {
  return form.test(token) ? hashToken(token) : null;
}

/** SHA-256: enough for 112 random bits or more (ASVS 6.5.2, 11.4). Never for a password. */
export function hashToken(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/**
 * Returns the address that a person opens to use a one-time link,
 * `https://console.example.org/enrol#<token>`. The token is the fragment, which browsers send to no
 * server: it reaches no log of a proxy or server, and no `Referer`. The page there sends it as a
 * form.
 */
export const enrolmentLink = (origin: string, token: string): string => `${origin}/enrol#${token}`;

/** Finds the token in a link or in what follows its `#`, as a person pastes it; else null. */
export const findLinkToken = (text: string): string | null => /(?:^|#)([A-Za-z0-9_-]{43})$/.exec(text)?.[1] ?? null;
