import { dayMs } from '../contract/durations.ts';
import type { Queryable, Transaction } from '../db/database.ts';
import { KnownBrowser } from './identity.entity.ts';
import { browsersPerPerson, knownBrowserDays } from './limits.ts';
import { findTokenHash, generateToken, hashToken } from './token.ts';

/**
 * Browsers with which a person has signed in with both factors (OWASP's device cookies). Failures
 * in one have a separate count, so failures elsewhere do not lock its person out. A browser's
 * token does not sign in: a thief still needs password and second factor, and has the attempts of
 * one browser for them.
 */

/** Remembers a browser after both factors. `known`: its previous token. Returns its token. */
export async function rememberBrowser(
  tx: Transaction,
  { personId, known }: { personId: string; known: string | null },
  now: Date,
): Promise<string> {
  const knownHash = known === null ? null : findTokenHash(known);
  if (knownHash !== null) await tx.nativeDelete(KnownBrowser, { personId, tokenHash: knownHash });
  const browsers = await tx.find(KnownBrowser, { personId }, { orderBy: { createdAt: 'desc', tokenHash: 'asc' } });
  // The oldest ones are deleted, so that a person has few.
  for (const oldest of browsers.slice(browsersPerPerson - 1)) tx.remove(oldest);
  const token = generateToken();
  tx.create(KnownBrowser, {
    tokenHash: hashToken(token),
    personId,
    createdAt: now,
    expiresAt: new Date(now.getTime() + knownBrowserDays * dayMs),
  });
  await tx.flush();
  return token;
}

/** Returns the hash that counts a browser's attempts; null when the person never used it. */
export async function findKnownBrowser(
  db: Queryable,
  personId: string,
  token: string | null,
  now: Date,
): Promise<Buffer | null> {
  const tokenHash = token === null ? null : findTokenHash(token);
  if (tokenHash === null) return null;
  const known = await db.count(KnownBrowser, { tokenHash, personId, expiresAt: { $gt: now } });
  return known === 0 ? null : tokenHash;
}

/** Deletes a person's known browsers except `except`, when password or factors change. */
export async function deleteKnownBrowsers(tx: Transaction, personId: string, except: string | null): Promise<void> {
  const kept = except === null ? null : findTokenHash(except);
  await tx.nativeDelete(KnownBrowser, { personId, ...(kept !== null && { tokenHash: { $ne: kept } }) });
}
