import { isOpenSql, overdueOfWebhookSql } from '#domain/webhooks/open-deliveries.ts';

/** The state of a region's database, as the operator shows it. */
export interface RegionState {
  /** Names of the migrations that were applied, in order. */
  migrations: string[];
  /**
   * Migrations that the newest run of the migrator could not apply, with PostgreSQL's error code;
   * null when it succeeded.
   */
  failedMigration: { names: string[]; code: string | null } | null;
  /** Deliveries that wait for an attempt. */
  waiting: number;
  /** Deliveries of active webhooks that have been due for over a minute, at most 1,000 of each. */
  overdue: number;
  /** When the oldest of those was due, as ISO 8601; null without one. */
  oldestDueAt: string | null;
  /** Webhooks suspended because they accepted nothing, or answered 410. */
  suspendedWebhooks: number;
  /** Active API keys of each version of KEY_PEPPERS. */
  peppers: { version: number; count: number }[];
}

/** A region's state in one row, `{state: RegionState}`, by partial indexes. */
export const readRegionStateSql = /* sql */ `
  with late as (
    select coalesce(sum(l.count), 0) as count, min(l.oldest) as oldest
    from webhook w cross join lateral ${overdueOfWebhookSql} l
    where w.state = 'active'
  )
  select json_build_object(
    'migrations', (select json_agg(v.name order by v.name) from api.schema_version v),
    'failedMigration', (select json_build_object('names', f.names, 'code', f.code) from migration_failure f),
    'waiting', (select count(*) from delivery d where ${isOpenSql}),
    'overdue', l.count,
    'oldestDueAt', to_char(l.oldest at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    'suspendedWebhooks', (select count(*) from webhook w where w.state = 'suspended'),
    'peppers', (select coalesce(json_agg(p order by p.version), '[]') from (
      select k.pepper_version as version, count(*) as count from api_key k
      where k.revoked_at is null and (k.expires_at is null or k.expires_at > now()) group by 1) p)
  ) as state
  from late l`;
