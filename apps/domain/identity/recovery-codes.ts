import { randomBytes } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import { arrayOf, runStatement, sql } from '../db/statement.ts';
import { recoveryCodes } from './limits.ts';
import { hashOf } from './token.ts';

/**
 * Recovery codes: 24 characters, `ABCD-EFGH-IJKL-MNOP-QRST-UVWX`, of an alphabet of 32, so 120
 * random bits. Codes of 112 bits or more may be stored as a plain hash (ASVS 6.5.2), and so are
 * found by an index; shorter ones would need an argon2 for each of the ten.
 */

/** Without I and O, 0 and 1, which are mistaken for each other. */
const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const codeLength = 24;

/** New codes of a person, instead of all they had. Show them once. */
export async function replaceRecoveryCodes(tx: EntityManager, personId: string, now: Date): Promise<string[]> {
  const codes = Array.from({ length: recoveryCodes }, generateRecoveryCode);
  const hashes = codes.map((code) => hashOf(plain(code)));
  await runStatement(tx, sql`delete from recovery_code where person_id = ${personId}`);
  await runStatement(
    tx,
    sql`
    insert into recovery_code (person_id, code_hash, created_at)
    select ${personId}, h, ${now.toISOString()}::timestamptz from unnest(${arrayOf(hashes)}::bytea[]) as h`,
  );
  return codes;
}

/**
 * Uses a code up. False when the person has no such code or it was used; of two who use it at once,
 * one does.
 */
export async function consumeRecoveryCode(
  tx: EntityManager,
  personId: string,
  code: string,
  now: Date,
): Promise<boolean> {
  const rows = await runStatement(
    tx,
    sql`
    update recovery_code set used_at = ${now.toISOString()}::timestamptz
    where person_id = ${personId} and code_hash = ${hashOf(plain(code))} and used_at is null
    returning person_id`,
  );
  return rows.length > 0;
}

/** How many codes a person has left. */
export async function countRecoveryCodes(em: EntityManager, personId: string): Promise<number> {
  const rows = await runStatement<{ left: number }>(
    em,
    sql`
    select count(*)::int as left from recovery_code where person_id = ${personId} and used_at is null`,
  );
  return rows[0]?.left ?? 0;
}

/** 32 divides 256, so each character is equally likely. */
function generateRecoveryCode(): string {
  const characters = Array.from(randomBytes(codeLength), (byte) => alphabet.charAt(byte % alphabet.length)).join('');
  return characters.replace(/(.{4})(?=.)/g, '$1-');
}

/** However it is typed: in any case, with or without dashes and spaces. */
function plain(code: string): string {
  return code.toUpperCase().replace(/[\s-]/g, '').slice(0, 100);
}
