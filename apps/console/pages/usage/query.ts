import { sql } from 'kysely';
import { dayMs, hourMs } from '#domain/contract/durations.ts';
import type { Queryable } from '#domain/db/database.ts';

/** The periods of the page: a number of bars, each an hour or a day. */
export const usageSpans = {
  '24h': { label: '24 hours', bars: 24, unit: 'hour' },
  '30d': { label: '30 days', bars: 30, unit: 'day' },
  '90d': { label: '90 days', bars: 90, unit: 'day' },
} as const;

export type UsageSpan = keyof typeof usageSpans;

/** Calls of one key to one operation, or (`code`) rejected calls of one key. */
export interface UsageRow {
  keyId: string;
  keyLabel: string;
  keyHint: string;
  action: string;
  answered: number;
  rejected: number;
}

export interface Usage {
  rows: UsageRow[];
  rejections: { code: string; status: number; calls: number }[];
  /** The addresses of the newest audit entries, with the last call from each. */
  addresses: { address: string; lastAt: string; calls: number }[];
  /** By hour or day (UTC), oldest first; periods without a call are left out. */
  bars: { from: string; answered: number; rejected: number }[];
  /** Until when all calls are counted; null: none was. */
  countedTo: string | null;
}

/** How many of an organization's newest rows are searched for addresses. */
const rowsWithAddresses = 2_000;

/** Returns an organization's calls of a period, by their sums. */
export async function getUsage(
  db: Queryable,
  organizationId: string,
  span: UsageSpan,
  now: Date,
): Promise<{ usage: Usage; periods: string[] }> {
  const { bars, unit } = usageSpans[span];
  const lengthMs = unit === 'hour' ? hourMs : dayMs;
  const last = Math.floor(now.getTime() / lengthMs) * lengthMs;
  const periods = Array.from({ length: bars }, (_, n) => new Date(last - (bars - 1 - n) * lengthMs).toISOString());
  const [usage] = await db.query(sql<Usage>`
    with line as materialized (
      select s.key_id, s.action, s.status, s.code, s.calls as count, s.starts_at as at from call_sum s
      where s.organization_id = ${organizationId} and s.unit = ${unit} and s.starts_at >= ${periods[0]}
    ), counted as (
      select l.key_id as "keyId", l.action, coalesce(sum(l.count) filter (where l.status < 400), 0)::float8 as answered,
        coalesce(sum(l.count) filter (where l.status >= 400), 0)::float8 as rejected
      from line l group by l.key_id, l.action
    )
    select
      coalesce((select json_agg(r) from (
        select c.*, coalesce(k.label, '') as "keyLabel", coalesce(k.hint, '') as "keyHint"
        from counted c left join api_key k on k.organization_id = ${organizationId} and k.id = c."keyId"
        order by c.answered + c.rejected desc, c."keyId", c.action limit 200) r), '[]') as rows,
      coalesce((select json_agg(r) from (
        select l.code, l.status, sum(l.count)::float8 as calls from line l where l.status >= 400
        group by 1, 2 order by 3 desc, 1 limit 50) r), '[]') as rejections,
      coalesce((select json_agg(r) from (
        select host(l.address) as address, api.utc(max(l.at)) as "lastAt", sum(l.count)::float8 as calls
        from (
          select a.key_id, a.status, a.address, a.at, a.count from audit_entry a
          where a.organization_id = ${organizationId} and a.at >= ${periods[0]}
          order by a.at desc, a.id desc limit ${sql.lit(rowsWithAddresses)}) l
        where l.key_id is not null and l.status is not null and l.address is not null
        group by l.address order by max(l.at) desc, l.address limit 20) r),
        '[]') as addresses,
      coalesce((select json_agg(r) from (
        select api.utc(l.at) as "from",
          coalesce(sum(l.count) filter (where l.status < 400), 0)::float8 as answered,
          coalesce(sum(l.count) filter (where l.status >= 400), 0)::float8 as rejected
        from line l group by 1 order by 1) r), '[]') as bars,
      (select api.utc(p.summed_at) from audit_progress p) as "countedTo"`);
  return { usage: usage as Usage, periods };
}
