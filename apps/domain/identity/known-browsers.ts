import { dayMs } from '../contract/durations.ts';
import type { Queryable, Transaction } from '../db/database.ts';
import { KnownBrowser } from './identity.entity.ts';
import { browsersPerPerson, knownBrowserDays } from './limits.ts';
import { findTokenHash, generateToken, hashToken } from './token.ts';

/**
 * Browsers with which a person has signed in with both factors (OWASP's device cookies). Failures
 * in one have a separate count, so failures elsewhere do not lock its person out. A browser's
 * token does not sign in: a thief still needs password and second factor, and has the attempts of
 * one browser for them. Of a browser that has only signed in at a provider, the console counts failures of the password
 * as a stranger's (`SecondFactorStep`): otherwise each sign-in at a provider would make room for guesses.
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
    expiresAt: getExpiry(now),
  });
  await tx.flush();
  return token;
}

/**
 * Keeps a known browser for another 30 days after a sign-in at a provider. Its token stays: a new one would begin a new
 * count of password failures, of which this sign-in proves nothing. Returns the token; null when it is not known.
 */
export async function keepBrowser(
  tx: Transaction,
  { personId, known }: { personId: string; known: string | null },
  now: Date,
): Promise<string | null> {
  const tokenHash = known === null ? null : findTokenHash(known);
  if (tokenHash === null) return null;
  const kept = await tx.nativeUpdate(
    KnownBrowser,
    { tokenHash, personId, expiresAt: { $gt: now } },
    { expiresAt: getExpiry(now) },
  );
  return kept === 0 ? null : known;
}

const getExpiry = (now: Date) => new Date(now.getTime() + knownBrowserDays * dayMs);

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
