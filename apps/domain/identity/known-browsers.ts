import type { EntityManager } from '@mikro-orm/postgresql';
import { KnownBrowser } from '../db/entities/identity.ts';
import { browsersPerPerson, knownBrowserDays } from './limits.ts';
import { findTokenHash, generateToken, hashOf } from './token.ts';

/**
 * Browsers that a person has signed in with, both factors (OWASP's device cookies). What fails in
 * one is counted on its own, so failing on purpose elsewhere does not lock its person out. A
 * browser's token opens nothing: a thief still needs password and second factor, and has the
 * attempts of one browser for them.
 */

/**
 * Remembers the browser of a person who has just given both factors, in the transaction that saw
 * it, for 30 days; `known` is the token it had until now. Returns its new token.
 */
export async function rememberBrowser(
  tx: EntityManager,
  { personId, known }: { personId: string; known: string | null },
  now: Date,
): Promise<string> {
  const knownHash = known === null ? null : findTokenHash(known);
  if (knownHash !== null) await tx.nativeDelete(KnownBrowser, { personId, tokenHash: knownHash });
  const browsers = await tx.find(KnownBrowser, { personId }, { orderBy: { createdAt: 'desc', tokenHash: 'asc' } });
  // The oldest go, so that a person's browsers stay a short list.
  for (const oldest of browsers.slice(browsersPerPerson - 1)) tx.remove(oldest);
  const token = generateToken();
  tx.create(KnownBrowser, {
    tokenHash: hashOf(token),
    personId,
    createdAt: now,
    expiresAt: new Date(now.getTime() + knownBrowserDays * 24 * 3_600_000),
  });
  await tx.flush();
  return token;
}

/**
 * Returns the hash by which a browser's attempts are counted; null when the person has not signed in
 * with it.
 */
export async function findKnownBrowser(
  em: EntityManager,
  personId: string,
  token: string | null,
  now: Date,
): Promise<Buffer | null> {
  const tokenHash = token === null ? null : findTokenHash(token);
  if (tokenHash === null) return null;
  const known = await em.count(KnownBrowser, { tokenHash, personId, expiresAt: { $gt: now } });
  return known === 0 ? null : tokenHash;
}

/**
 * Deletes a person's known browsers, but for the one with the token `except`: with the sessions that
 * end when what they sign in with changes.
 */
export async function deleteKnownBrowsers(tx: EntityManager, personId: string, except: string | null): Promise<void> {
  const kept = except === null ? null : findTokenHash(except);
  await tx.nativeDelete(KnownBrowser, { personId, ...(kept !== null && { tokenHash: { $ne: kept } }) });
}
