import type { Pool } from 'pg';

/** The API calls of one hour; `from` is ISO text. */
export interface CallHour {
  from: string;
  succeeded: number;
  /** Refused because of the key, its scope or the request. */
  refused: number;
  /** Over the rate limit. */
  limited: number;
  /** Whether there may be more than were counted. */
  isCapped: boolean;
}

/** The most rows of one hour that are counted. */
export const callLinesCounted = 1_000;

/** `$1` organization, `$2` start of the first hour, `$3` hours, `$4` rows counted of each. */
const callHoursSql = /* sql */ `
  select to_char(h.from_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "from", c.*
  from generate_series($2::timestamptz, $2::timestamptz + make_interval(hours => $3 - 1), interval '1 hour') h (from_at)
  cross join lateral (
    select coalesce(sum(a.count) filter (where a.status < 400), 0)::float8 as succeeded,
      coalesce(sum(a.count) filter (where a.status >= 400 and a.status <> 429), 0)::float8 as refused,
      coalesce(sum(a.count) filter (where a.status = 429), 0)::float8 as limited,
      count(*) = $4 as "isCapped"
    from (
      select a.status, a.count from activity a
      where a.organization_id = $1 and a.at >= h.from_at and a.at < h.from_at + interval '1 hour'
        and a.status is not null
      order by a.at desc, a.id desc
      limit $4
    ) a
  ) c
  order by h.from_at`;

/** Returns an organization's API calls by the hour, oldest first, the current hour last. */
export async function listCallHours(pool: Pool, organizationId: string, hours: number, now: Date): Promise<CallHour[]> {
  const hourMs = 3_600_000;
  const first = new Date((Math.floor(now.getTime() / hourMs) - hours + 1) * hourMs);
  const values = [organizationId, first, hours, callLinesCounted];
  const { rows } = await pool.query<CallHour>({ name: 'listCallHours', text: callHoursSql, values });
  return rows;
}
