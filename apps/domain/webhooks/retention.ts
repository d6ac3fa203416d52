import type { Pool } from 'pg';

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
export async function findDeliveryRetentionDays(pool: Pool): Promise<number | null> {
  const { rows } = await pool.query<{ days: number | null }>(
    'select f.applied_delivery_days as days from retention_floor f',
  );
  return rows[0]?.days ?? null;
}
