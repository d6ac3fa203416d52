import { sql } from 'kysely';
import type { Queryable } from '../db/database.ts';

/** Where an entry is in the chain of its month (`YYYY-MM`, UTC). */
export interface ChainPosition {
  month: string;
  position: number;
  /** Of the chain up to it, in hexadecimal. */
  hash: string;
}

/**
 * Finds the position of an action in its chain; null when it is not linked yet, or no longer there.
 *
 * No index leads from an entry to its link, because each read would have to maintain it. Links are in the
 * order of their entries' serials, so a binary search reads a few. It passes over entries that count
 * requests: these have a link for each version, and the serial of the newest.
 */
export async function findChainPosition(
  db: Queryable,
  organizationId: string,
  entryId: string,
): Promise<ChainPosition | null> {
  const [found] = await db.query(sql<ChainPosition>`
    with recursive entry as (
      select a.serial, date_trunc('month', a.at at time zone 'UTC')::date as month from audit_entry a
      where a.organization_id = ${organizationId}::uuid and a.id = ${entryId}::uuid
    ), search (low, high, found) as (
      select c.dropped_length + 1, c.length, null::bigint from audit_chain c join entry e on e.month = c.month
      where c.organization_id = ${organizationId}::uuid
      union all
      select case when l.serial < e.serial then l.position + 1 else s.low end,
        case when l.serial < e.serial then s.high else (s.low + s.high) / 2 - 1 end,
        case when l.serial = e.serial then l.position end
      from search s cross join entry e
      left join lateral (
        select k.position, a.serial from audit_link k
        join audit_entry a on a.organization_id = k.organization_id and a.id = k.entry_id and a.at = k.entry_at
        where k.organization_id = ${organizationId}::uuid and k.month = e.month and k.digest is null
          and k.position between (s.low + s.high) / 2 and s.high
        order by k.position limit 1
      ) l on true
      where s.found is null and s.low <= s.high
    )
    select to_char(e.month, 'YYYY-MM') as month, s.found::float8 as position, encode(k.hash, 'hex') as hash
    from search s cross join entry e
    join audit_link k on k.organization_id = ${organizationId}::uuid and k.month = e.month and k.position = s.found`);
  return found ?? null;
}
