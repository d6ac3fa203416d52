import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from './statement.ts';

/** Loads a row in order to change it (`for no key update`, see `driver.ts`): other changes wait. */
export const writeLock = { lockMode: LockMode.PESSIMISTIC_WRITE } as const;

/** Loads a row that must not change (`for share`): changes wait, other readers do not. */
export const shareLock = { lockMode: LockMode.PESSIMISTIC_READ } as const;

/** Takes the lock of a name until the transaction ends. The database has it once. */
export async function lockName(tx: EntityManager, name: string): Promise<void> {
  await query(tx)`select pg_advisory_xact_lock(hashtextextended(${`org_api.${name}`}::text, 0))`;
}
