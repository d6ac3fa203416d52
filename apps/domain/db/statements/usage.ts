import type { Pool } from 'pg';

/** How many of an organization's newest calls the page of usage counts at most. */
const usageLooksAt = 100_000;

/** The periods of the page: a number of bars, each an hour or a day. */
export const usageSpans = {
  '24h': { label: '24 hours', bars: 24, unit: 'hour' },
  '30d': { label: '30 days', bars: 30, unit: 'day' },
  '90d': { label: '90 days', bars: 90, unit: 'day' },
} as const;

export type UsageSpan = keyof typeof usageSpans;

/** Calls of one key to one operation, or (`code`) refused calls of one key. */
export interface UsageRow {
  keyId: string;
  keyLabel: string;
  keyHint: string;
  action: string;
  answered: number;
  refused: number;
}

export interface Usage {
  rows: UsageRow[];
  refusals: { code: string; status: number; calls: number }[];
  /** The newest addresses, with the last call from each. */
  addresses: { address: string; lastAt: string; calls: number }[];
  /** By hour or day (UTC), oldest first; periods without a call are left out. */
  bars: { from: string; answered: number; refused: number }[];
  /** When the oldest counted call was, if not all were counted. */
  countedFrom: string | null;
}

/** `$1` organization, `$2` first moment, `$3` `hour` or `day`, `$4` the most lines checked. */
const usageSql = /* sql */ `
  with line as materialized (
    select a.key_id, a.action, a.status, a.code, a.count, a.address, a.at from activity a
    where a.organization_id = $1 and a.at >= $2 and a.key_id is not null and a.status is not null
    order by a.at desc, a.id desc limit $4
  ), counted as (
    select l.key_id as "keyId", l.action, coalesce(sum(l.count) filter (where l.status < 400), 0)::float8 as answered,
      coalesce(sum(l.count) filter (where l.status >= 400), 0)::float8 as refused
    from line l group by l.key_id, l.action
  )
  select
    coalesce((select json_agg(r) from (
      select c.*, coalesce(k.label, '') as "keyLabel", coalesce(k.hint, '') as "keyHint"
      from counted c left join api_key k on k.organization_id = $1 and k.id = c."keyId"
      order by c.answered + c.refused desc, c."keyId", c.action limit 200) r), '[]') as rows,
    coalesce((select json_agg(r) from (
      select coalesce(l.code, '') as code, l.status, sum(l.count)::float8 as calls from line l where l.status >= 400
      group by 1, 2 order by 3 desc, 1 limit 50) r), '[]') as refusals,
    coalesce((select json_agg(r) from (
      select host(l.address) as address, api.utc(max(l.at)) as "lastAt", sum(l.count)::float8 as calls from line l
      where l.address is not null group by l.address order by max(l.at) desc, l.address limit 20) r),
      '[]') as addresses,
    coalesce((select json_agg(r) from (
      select api.utc(date_trunc($3, l.at, 'UTC')) as "from",
        coalesce(sum(l.count) filter (where l.status < 400), 0)::float8 as answered,
        coalesce(sum(l.count) filter (where l.status >= 400), 0)::float8 as refused
      from line l group by 1 order by 1) r), '[]') as bars,
    case when (select count(*) from line) = $4 then api.utc((select min(l.at) from line l)) end as "countedFrom"`;

/** Returns an organization's calls of a period, by its newest `usageLooksAt` lines of the log. */
export async function getUsage(
  pool: Pool,
  organizationId: string,
  span: UsageSpan,
  now: Date,
  lookAt = usageLooksAt,
): Promise<{ usage: Usage; periods: string[] }> {
  const { bars, unit } = usageSpans[span];
  const lengthMs = unit === 'hour' ? 3_600_000 : 86_400_000;
  const last = Math.floor(now.getTime() / lengthMs) * lengthMs;
  const periods = Array.from({ length: bars }, (_, n) => new Date(last - (bars - 1 - n) * lengthMs).toISOString());
  const values = [organizationId, periods[0], unit, lookAt];
  const { rows } = await pool.query<Usage>({ name: 'getUsage', text: usageSql, values });
  return { usage: rows[0] as Usage, periods };
}
