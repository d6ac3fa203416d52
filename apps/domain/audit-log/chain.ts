/** Appends at most `$1` committed entries of the log to their hash chains; one row, `AppendedRow`. */
export const appendAuditChainSql = /* sql */ `
  select a.linked, a.is_all_done as "isAllDone" from append_audit_chain($1) a`;

export interface AppendedRow {
  linked: number;
  isAllDone: boolean;
}

/** Lists at most `$1` ends of chains that have no anchor of today; rows of `AuditAnchor`. */
export const listAuditAnchorsSql = /* sql */ `
  select a.organization_id as "organizationId", a.month, a.length::float8 as length, a.hash
  from list_audit_anchors($1) a`;

/** Records that anchors were logged. Arrays: `$1` organizations, `$2` months, `$3` positions. */
export const recordAuditAnchorsSql = /* sql */ `
  select record_audit_anchors($1::uuid[], $2::text[], $3::bigint[])`;

/** The end of a chain: its number of links and last hash (hexadecimal). `month`: `YYYY-MM`. */
export interface AuditAnchor {
  organizationId: string;
  month: string;
  length: number;
  hash: string;
}

/** The hash before the first remaining link of a chain `c`, hexadecimal. */
export const chainStartSql = `encode(coalesce(c.dropped_hash, audit_chain_start(c.organization_id, c.month)), 'hex')`;

/** Lists the chains as `ChainRow`. `$1` organization or null, `$2` month (`YYYY-MM`) or null. */
export const listAuditChainsSql = /* sql */ `
  select c.organization_id as "organizationId", to_char(c.month, 'YYYY-MM') as month, c.length::float8 as length,
    encode(c.hash, 'hex') as hash, c.dropped_length::float8 as "droppedLength",
    ${chainStartSql} as "firstHash",
    c.dropped_length > 0 and not exists (
      select from audit_purge p
      where p.kept_from >= (c.month + interval '1 month') at time zone 'UTC'
        and p.kept_from <= p.purged_at - p.floor_days * interval '24 hours' and p.purged_at <= now()
    ) as "isDroppedEarly"
  from audit_chain c
  where ($1::uuid is null or c.organization_id = $1) and ($2::text is null or c.month = to_date($2, 'YYYY-MM'))
  order by c.organization_id, c.month`;

export interface ChainRow extends AuditAnchor {
  droppedLength: number;
  /** The hash before the first remaining link. */
  firstHash: string;
  /** Whether entries were dropped that no purge of the log of purges may have dropped. */
  isDroppedEarly: boolean;
}

/**
 * Checks a part of one chain: `$1` organization, `$2` month, `$3` the position before it, `$4` the
 * hash of that position (hexadecimal), `$5` the most links. One row of `CheckedRow`. The second
 * digest of an entry that counts requests is compared only with its last link, because each version
 * has a link.
 */
export const checkAuditLinksSql = /* sql */ `
  with link as (
    select l.position, l.entry_id, l.entry_at, l.digest, l.hash,
      lag(l.position, 1, $3::bigint) over by_position as position_before,
      lag(l.hash, 1, decode($4, 'hex')) over by_position as hash_before,
      max(l.entry_at) over (order by l.position rows between unbounded preceding and 1 preceding) as newest_before
    from audit_link l
    where l.organization_id = $1 and l.month = to_date($2, 'YYYY-MM') and l.position > $3
    window by_position as (order by l.position)
    order by l.position limit $5
  ), checked as (
    select l.position, l.entry_id as "entryId", case
      when l.position <> l.position_before + 1 then 'link_missing'
      when a.id is null then 'removed'
      when sha256(l.hash_before || coalesce(l.digest, audit_entry_digest(a))) <> l.hash then 'changed'
      when l.digest is not null and l.digest <> audit_entry_digest(a) and not exists (
        select from audit_link n where n.organization_id = $1 and n.month = to_date($2, 'YYYY-MM')
          and n.position > l.position and n.entry_id = l.entry_id) then 'changed'
      when l.digest is not null and a.action not in ('api.rate_limited', 'api.console') then 'changed'
      when not audit_names_verify(a) then 'changed'
      when l.entry_at < l.newest_before - interval '1 hour' then 'backdated'
    end as fault
    from link l left join audit_entry a on a.id = l.entry_id and a.at = l.entry_at and a.organization_id = $1
  )
  select (select count(*)::integer from link) as links,
    (select max(l.position)::float8 from link l) as position,
    (select encode(l.hash, 'hex') from link l order by l.position desc limit 1) as hash,
    coalesce((select json_agg(f) from (select c.position, c."entryId", c.fault from checked c
      where c.fault is not null order by c.position limit 100) f), '[]') as faults`;

export interface CheckedRow {
  links: number;
  /** The position of the last link; null without one. */
  position: number | null;
  hash: string | null;
  faults: { position: number; entryId: string; fault: ChainFault }[];
}

/**
 * `link_missing`: links before it were removed. `removed`, `changed`: its entry was. `inserted`: an
 * entry has no link, or two. `backdated`: an entry was added more than an hour after newer ones.
 * `end`: the last links were removed or replaced. `anchor`: the chain differs from a logged anchor.
 * `dropped`: the month was dropped inside the owner's floor, or later than the log of purges says.
 */
export type ChainFault =
  | 'link_missing'
  | 'removed'
  | 'changed'
  | 'inserted'
  | 'backdated'
  | 'end'
  | 'anchor'
  | 'dropped';

/** Lists 100 entries of a month without a link, or with two. `$1` organization, `$2` month. */
export const listUnlinkedEntriesSql = /* sql */ `
  with link as (
    select l.entry_id, l.entry_at, count(*) as links, bool_or(l.digest is null) as is_once from audit_link l
    where l.organization_id = $1 and l.month = to_date($2, 'YYYY-MM') group by l.entry_id, l.entry_at
  )
  (select a.id as "entryId" from audit_entry a
    where a.organization_id = $1 and a.at >= to_date($2, 'YYYY-MM')::timestamp at time zone 'UTC'
      and a.at < (to_date($2, 'YYYY-MM') + interval '1 month') at time zone 'UTC'
      and a.serial < (select p.linked_to from audit_progress p)
      and not exists (select from link l where l.entry_id = a.id and l.entry_at = a.at)
    limit 100)
  union all
  (select l.entry_id from link l where l.links > 1 and l.is_once limit 100)`;

/** Lists months with entries to link but no chain: `{organizationId, month}`. `$1` organization. */
export const listUnchainedMonthsSql = /* sql */ `
  select a.organization_id as "organizationId", to_char(a.month, 'YYYY-MM') as month
  from (select distinct a.organization_id, date_trunc('month', a.at at time zone 'UTC')::date as month
    from audit_entry a where a.serial < (select p.linked_to from audit_progress p)
      and ($1::uuid is null or a.organization_id = $1)) a
  where not exists (select from audit_chain c
    where c.organization_id = a.organization_id and c.month = a.month)
  order by 1, 2`;

/** One link as `LinkRow`: `$1` organization, `$2` month, `$3` position. */
export const findAuditLinkSql = /* sql */ `
  select encode(l.hash, 'hex') as hash, l.entry_id as "entryId" from audit_link l
  where l.organization_id = $1 and l.month = to_date($2, 'YYYY-MM') and l.position = $3`;

export interface LinkRow {
  /** Hexadecimal. */
  hash: string;
  entryId: string;
}
