import type { Pool } from 'pg';

/** The API calls of one hour; `from` is ISO text. */
export interface CallHour {
  from: string;
  succeeded: number;
  /** Refused because of the key, its scope or the request. */
  refused: number;
  /** Over the rate limit. */
  limited: number;
}

/** `$1` organization, `$2` start of the first hour, `$3` hours. */
const callHoursSql = /* sql */ `
  select to_char(h.from_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "from",
    coalesce(sum(s.calls) filter (where s.status < 400), 0)::float8 as succeeded,
    coalesce(sum(s.calls) filter (where s.status >= 400 and s.status <> 429), 0)::float8 as refused,
    coalesce(sum(s.calls) filter (where s.status = 429), 0)::float8 as limited
  from generate_series($2::timestamptz, $2::timestamptz + make_interval(hours => $3 - 1), interval '1 hour') h (from_at)
  left join call_sum s on s.organization_id = $1 and s.unit = 'hour' and s.starts_at = h.from_at
  group by h.from_at
  order by h.from_at`;

/** Returns an organization's API calls by the hour, oldest first, the current hour last. */
export async function listCallHours(pool: Pool, organizationId: string, hours: number, now: Date): Promise<CallHour[]> {
  const hourMs = 3_600_000;
  const first = new Date((Math.floor(now.getTime() / hourMs) - hours + 1) * hourMs);
  const values = [organizationId, first, hours];
  const { rows } = await pool.query<CallHour>({ name: 'listCallHours', text: callHoursSql, values });
  return rows;
}

/** Adds about `$1` committed entries of the log to the sums of calls; one row, `{isAllDone}`. */
export const sumCallsSql = /* sql */ `select s.is_all_done as "isAllDone" from sum_calls($1) s`;
