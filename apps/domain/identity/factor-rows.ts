import type { EntityManager } from '@mikro-orm/postgresql';
import { arrayOf, runStatement, sql } from '../db/statement.ts';
import { factorsPerPerson } from './limits.ts';
import type { StoredPasskey } from './passkey.ts';
import { IdentityRefused } from './refused.ts';

/** An authenticator app's row; `sealed` is bound to `id`. */
export interface TotpRow {
  id: string;
  sealed: Buffer;
}

/** A passkey's row. */
export interface PasskeyRow extends StoredPasskey {
  id: string;
}

export async function listTotpRows(em: EntityManager, personId: string): Promise<TotpRow[]> {
  return runStatement<TotpRow>(
    em,
    sql`
    select id, totp_sealed as sealed from second_factor
    where person_id = ${personId} and kind = 'totp' order by created_at, id`,
  );
}

export async function listPasskeyRows(em: EntityManager, personId: string): Promise<PasskeyRow[]> {
  const rows = await runStatement<PasskeyRow>(
    em,
    sql`
    select id, credential_id as "credentialId", public_key as "publicKey", counter, transports from second_factor
    where person_id = ${personId} and kind = 'passkey' order by created_at, id`,
  );
  return rows.map((row) => ({ ...row, counter: Number(row.counter) }));
}

/**
 * Adds an authenticator app whose code of `step` has been accepted. `sealed` must be bound to `id`.
 * @throws IdentityRefused `too_many_factors`
 */
export async function insertTotp(
  tx: EntityManager,
  factor: { id: string; personId: string; name: string; sealed: Buffer; step: number },
  now: Date,
): Promise<void> {
  await assertRoom(tx, factor.personId);
  await runStatement(
    tx,
    sql`
    insert into second_factor (id, person_id, kind, name, created_at, totp_sealed, totp_last_step)
    values (${factor.id}, ${factor.personId}, 'totp', ${nameOf(factor.name, 'Authenticator app')}, ${now.toISOString()}::timestamptz, ${factor.sealed}, ${factor.step})`,
  );
}

/**
 * Adds a passkey. @throws IdentityRefused `factor_known` when it is registered already,
 * `too_many_factors`
 */
export async function insertPasskey(
  tx: EntityManager,
  factor: { id: string; personId: string; name: string; passkey: StoredPasskey },
  now: Date,
): Promise<void> {
  await assertRoom(tx, factor.personId);
  const { credentialId, publicKey, counter, transports } = factor.passkey;
  const rows = await runStatement(
    tx,
    sql`
    insert into second_factor (id, person_id, kind, name, created_at, credential_id, public_key, counter, transports)
    values (${factor.id}, ${factor.personId}, 'passkey', ${nameOf(factor.name, 'Passkey')}, ${now.toISOString()}::timestamptz,
      ${credentialId}, ${publicKey}, ${counter}, ${arrayOf(transports)}::text[])
    on conflict (credential_id) do nothing returning id`,
  );
  if (rows.length === 0) throw new IdentityRefused('factor_known', 'This passkey is registered already.');
}

/** Under the lock of the person's row, so that two at once do not both take the last place. */
async function assertRoom(tx: EntityManager, personId: string): Promise<void> {
  await runStatement(tx, sql`select from sign_in where person_id = ${personId} for no key update`);
  const rows = await runStatement<{ count: number }>(
    tx,
    sql`
    select count(*)::int as count from second_factor where person_id = ${personId}`,
  );
  if ((rows[0]?.count ?? 0) < factorsPerPerson) return;
  throw new IdentityRefused(
    'too_many_factors',
    `You have ${factorsPerPerson} second factors, the most there can be. Remove one first.`,
  );
}

/** What its person calls it, cut to 100 characters. */
function nameOf(name: string, otherwise: string): string {
  return [...name.trim()].slice(0, 100).join('') || otherwise;
}
