import { sql } from 'kysely';
import type { Queryable } from '../db/database.ts';

/** Creates the log's partitions three months ahead; one row, `{made}`. */
export const keepPartitionsSql = /* sql */ `select keep_audit_partitions() as made`;

/** Drops partitions of the audit log older than `$1` days; one row, `{dropped}`: months. */
export const dropOldAuditEntriesSql = /* sql */ `select drop_old_audit_entries($1) as dropped`;

/**
 * One row: bytes of the log's default partition, 0 while each month has its own, and the age of the
 * oldest entry without a link in seconds, 0 when every entry has one.
 */
export const auditLogStateSql = /* sql */ `
  select pg_relation_size('public.audit_entry_default')::float8 as "defaultPartitionBytes",
    audit_unlinked_age() as "unlinkedAgeSeconds"`;

/** Returns for how many days the audit log is kept; null before the worker applied it. */
export async function findRetentionDays(db: Queryable): Promise<number | null> {
  const [row] = await db.query(sql<{ days: number | null }>`select f.applied_days as days from retention_floor f`);
  return row?.days ?? null;
}
