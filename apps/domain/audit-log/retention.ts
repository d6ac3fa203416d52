import type { Pool } from 'pg';

/** Creates the log's partitions three months ahead; one row, `{made}`. */
export const keepPartitionsSql = /* sql */ `select keep_activity_partitions() as made`;

/** Drops partitions of the activity log older than `$1` days; one row, `{dropped}`: months. */
export const dropOldActivitySql = /* sql */ `select drop_old_activity($1) as dropped`;

/** Bytes of the log's default partition, one row, `{bytes}`: 0 while each month has its own. */
export const activityStateSql = /* sql */ `
  select pg_relation_size('public.activity_default')::float8 as "defaultPartitionBytes",
    activity_unlinked_age() as "unlinkedAgeSeconds"`;

export interface ActivityState {
  defaultPartitionBytes: number;
  /** Age of the oldest row without a link, seconds; 0 when every row has one. */
  unlinkedAgeSeconds: number;
}

/** Returns for how many days the activity log is kept; null before the worker applied it. */
export async function findRetentionDays(pool: Pool): Promise<number | null> {
  const { rows } = await pool.query<{ days: number | null }>('select f.applied_days as days from retention_floor f');
  return rows[0]?.days ?? null;
}
