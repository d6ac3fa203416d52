import type { EntityManager } from '@mikro-orm/postgresql';
import { runStatement, sql } from '../db/statement.ts';
import { browsersPerPerson, knownBrowserDays } from './limits.ts';
import { findTokenHash, generateToken, hashOf } from './token.ts';

/**
 * Browsers that a person has signed in with, both factors (OWASP's device cookies). What fails in
 * one is counted on its own, so that nobody who fails on purpose elsewhere keeps its person out. A
 * browser's token opens nothing; whoever steals it still needs password and second factor, and has
 * the attempts of one browser for them.
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
  const token = generateToken();
  const at = sql`${now.toISOString()}::timestamptz`;
  const knownHash = known === null ? null : findTokenHash(known);
  // The oldest go, so that a person's browsers stay a short list.
  await runStatement(
    tx,
    sql`
    delete from known_browser where person_id = ${personId} and (token_hash = ${knownHash} or token_hash in (
      select token_hash from known_browser where person_id = ${personId} order by created_at desc, token_hash offset ${browsersPerPerson - 1}))`,
  );
  await runStatement(
    tx,
    sql`
    insert into known_browser (token_hash, person_id, created_at, expires_at)
    values (${hashOf(token)}, ${personId}, ${at}, ${at} + make_interval(days => ${knownBrowserDays}))`,
  );
  return token;
}

/**
 * The hash by which a browser's attempts are counted; null when it is none that the person has
 * signed in with.
 */
export async function findKnownBrowser(
  em: EntityManager,
  personId: string,
  token: string | null,
  now: Date,
): Promise<Buffer | null> {
  const hash = token === null ? null : findTokenHash(token);
  if (hash === null) return null;
  const rows = await runStatement(
    em,
    sql`
    select person_id from known_browser
    where token_hash = ${hash} and person_id = ${personId} and expires_at > ${now.toISOString()}::timestamptz`,
  );
  return rows.length === 0 ? null : hash;
}

/**
 * Forgets a person's browsers, but for the one with the token `except`: with the sessions that end
 * when what they sign in with changes.
 */
export async function deleteKnownBrowsers(tx: EntityManager, personId: string, except: string | null): Promise<void> {
  const hash = except === null ? null : findTokenHash(except);
  await runStatement(
    tx,
    sql`
    delete from known_browser where person_id = ${personId} and token_hash is distinct from ${hash}`,
  );
}
