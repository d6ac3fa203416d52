import { sql } from 'kysely';
import { hourMs } from '../contract/durations.ts';
import type { Queryable } from '../db/database.ts';

/** The API calls of one hour; `from` is ISO text. */
export interface CallHour {
  from: string;
  succeeded: number;
  /** Rejected because of the key, its scope or the request. */
  rejected: number;
  /** Over the rate limit. */
  limited: number;
}

/** Returns an organization's API calls by the hour, oldest first, the current hour last. */
export async function listCallHours(
  db: Queryable,
  organizationId: string,
  hours: number,
  now: Date,
): Promise<CallHour[]> {
  const first = new Date((Math.floor(now.getTime() / hourMs) - hours + 1) * hourMs);
  return db.query(sql<CallHour>`
    select to_char(h.from_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "from",
      coalesce(sum(s.calls) filter (where s.status < 400), 0)::float8 as succeeded,
      coalesce(sum(s.calls) filter (where s.status >= 400 and s.status <> 429), 0)::float8 as rejected,
      coalesce(sum(s.calls) filter (where s.status = 429), 0)::float8 as limited
    from generate_series(${first}::timestamptz, ${first}::timestamptz + make_interval(hours => ${hours} - 1),
      interval '1 hour') h (from_at)
    left join call_sum s on s.organization_id = ${organizationId} and s.unit = 'hour' and s.starts_at = h.from_at
    group by h.from_at
    order by h.from_at`);
}

/** Adds about `$1` committed entries of the log to the sums of calls; one row, `{isAllDone}`. */
export const sumCallsSql = /* sql */ `select s.is_all_done as "isAllDone" from sum_calls($1) s`;
