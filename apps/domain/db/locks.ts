import { LockMode } from '@mikro-orm/core';
import { sql } from 'kysely';
import type { Transaction } from './database.ts';

/** Loads a row in order to change it (`for no key update`, see `driver.ts`): other changes wait. */
export const writeLock = { lockMode: LockMode.PESSIMISTIC_WRITE } as const;

/** Loads a row that must not change (`for share`): changes wait, other readers do not. */
export const shareLock = { lockMode: LockMode.PESSIMISTIC_READ } as const;

/**
 * Serializes the changes of one organization's members, roles and keys, and new webhooks and URLs,
 * until the transaction ends, by its row. What is checked and loaded afterwards cannot change before the
 * commit: an owner must remain, the caller still has what they grant, and concurrent callers get
 * different numbers instead of an error of the unique index. Each such change takes this lock
 * first. Other changes of a webhook lock its row (`lockWebhook`). Seats and client access have
 * separate locks (`seat_assigned_rules`).
 */
export async function lockOrganization(tx: Transaction, organizationId: string): Promise<void> {
  await tx.query(sql`select lock_organization(${organizationId}::uuid)`);
}
