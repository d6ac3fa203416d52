import { sql } from 'kysely';
import type { Transaction } from '../db/database.ts';

/**
 * Begins access whose time has come and that the worker has not begun yet, with its event. Call it before
 * a change of the access: by the clock, it is active. Locks the plan, then the access.
 */
export async function beginDueGrant(tx: Transaction, organizationId: string, grantId: string): Promise<void> {
  await tx.query(sql`select begin_due_grant(${organizationId}::uuid, ${grantId}::uuid)`);
}
