import { sql } from 'kysely';
import type { Queryable } from '../db/database.ts';

/**
 * Purges deliveries that were settled more than `$1` days ago, with their attempts, and events of
 * that age without deliveries, at most `$2` of each; one row, `{deliveries, events}`. Open and
 * held deliveries stay, and so do those that the ledger has not found correct; its sums do not
 * change.
 *
 * @throws an error of PostgreSQL with fewer than 31 days.
 */
export const purgeDeliveriesSql = /* sql */ `
  select f.deliveries, f.events from purge_deliveries($1, $2) f`;

/** Erases secrets that are not valid any more. */
export const purgeExpiredSecretsSql = /* sql */ `select purge_expired_secrets()`;

/** Returns for how many days settled deliveries are kept, as last applied; null before the first purge. */
export async function findDeliveryRetentionDays(db: Queryable): Promise<number | null> {
  const [row] = await db.query(
    sql<{ days: number | null }>`select f.applied_delivery_days as days from retention_floor f`,
  );
  return row?.days ?? null;
}
