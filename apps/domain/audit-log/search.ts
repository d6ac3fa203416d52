import { sql } from 'kysely';
import type { Queryable } from '../db/database.ts';
import { joinConditions } from '../db/statement.ts';
import {
  type AuditLogFilter,
  type Direction,
  type From,
  type Position,
  planSearches,
  type Search,
} from './plan-search.ts';

export {
  type AuditLogFilter,
  entriesSearched,
  everything,
  type Position,
  type TextMatch,
} from './plan-search.ts';

/**
 * An audit entry with the names of its time. Those of keys and families, and people of calls, are
 * the current ones. Null: what they named did not exist.
 */
export interface AuditEntry {
  id: string;
  /** ISO, UTC, microseconds. */
  at: string;
  personId: string | null;
  personName: string | null;
  keyId: string | null;
  keyLabel: string | null;
  keyHint: string | null;
  action: string;
  /** HTTP status of a read's response; null for what people and the system did. */
  status: number | null;
  /** The code of the error response; null when there was none. */
  code: string | null;
  address: string | null;
  /** More than 1 only for rejected calls, which share an entry per key and minute. */
  count: number;
  detail: Record<string, unknown> | null;
  /** Name of the member in `detail.memberId`. */
  memberName: string | null;
  /** Description or host of the webhook in `detail.webhookId`. */
  webhookName: string | null;
  /** Family of the access in `detail.grantId`; null for readers who may not see clients. */
  clientName: string | null;
  /** Member with the access in `detail.grantId`, by the current name. */
  professionalName: string | null;
  /** Name of the role in `detail.roleId`. */
  roleName: string | null;
}

/** Who reads the log. Names of families are looked up only for readers who may see clients. */
export interface Reader {
  maySeeClients: boolean;
}

/** The default, so that a caller that sets nothing shows no family's name. */
export const seesNoClients: Reader = { maySeeClients: false };

/**
 * One page, newest first. `newer` and `older` are where the neighboring pages begin, null at an
 * end. `isWhole` is false when a bound was reached and the search may continue from `older`.
 */
export interface AuditLogPage {
  entries: AuditEntry[];
  newer: Position | null;
  older: Position | null;
  isWhole: boolean;
}

/**
 * Lists a page of an organization's log. Its time does not depend on the number of entries: one
 * condition uses an index in the log's order (migration 0006), and the others are checked in a
 * bounded number of its entries (`entriesSearched`).
 *
 * @param from - where the page begins, and its direction; null: at the newest entry.
 */
export async function listAuditEntries(
  db: Queryable,
  organizationId: string,
  filter: AuditLogFilter,
  from: From | null,
  pageSize: number,
  reader: Reader = seesNoClients,
): Promise<AuditLogPage> {
  const searches = planSearches(organizationId, filter, from);
  const [{ direction, rest }] = searches;
  const { rows, seenTo } =
    rest.length === 0
      ? { rows: await listEntries(db, searches[0], pageSize + 1, reader), seenTo: null }
      : await searchEntries(db, organizationId, searches, pageSize + 1, reader);
  const hasMore = rows.length > pageSize;
  const found = rows.slice(0, pageSize);
  const last = found.at(-1);
  const onward = hasMore && last !== undefined ? getPosition(last) : seenTo;
  const back = from === null ? null : found[0] === undefined ? from.position : getPosition(found[0]);
  return {
    entries: direction === 'older' ? found : found.reverse(),
    ...(direction === 'older' ? { newer: back, older: onward } : { newer: onward, older: back }),
    isWhole: seenTo === null,
  };
}

/** Returns one entry of an organization, or null when it has none with that id. */
export async function findAuditEntry(
  db: Queryable,
  organizationId: string,
  id: string,
  reader: Reader = seesNoClients,
): Promise<AuditEntry | null> {
  const rows = await db.query(sql<AuditEntry>`
    select ${entryColumns(reader)} from audit_entry a ${entryJoins}
    where a.id = ${id}::uuid and a.organization_id = ${organizationId}::uuid`);
  return rows[0] ?? null;
}

const getPosition = ({ at, id }: Position): Position => ({ at, id });

const order = (direction: Direction) =>
  direction === 'older' ? sql`order by a.at desc, a.id desc` : sql`order by a.at, a.id`;

const isoMicroseconds = sql`to_char(a.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

const entryColumns = ({ maySeeClients }: Reader) => sql`
  a.id, ${isoMicroseconds} as at, a.person_id as "personId",
    coalesce(a.names ->> 'person', m.name) as "personName", a.key_id as "keyId",
    coalesce(a.names ->> 'key', k.label) as "keyLabel", k.hint as "keyHint",
  a.action, a.status, a.code, host(a.address) as address, a.count,
  case when a.names ? 'renamed' then a.detail || jsonb_build_object('renamed', a.names -> 'renamed')
    else a.detail end as detail,
  coalesce(a.names ->> 'member', s.name) as "memberName",
  coalesce(a.names ->> 'webhook', nullif(left(regexp_replace(w.description, '\\s+', ' ', 'g'), 100), ''),
    split_part(w.url, '/', 3) || ' (' || right(w.id::text, 6) || ')') as "webhookName",
  ${maySeeClients ? sql`f.name` : sql`null`} as "clientName",
  h.name as "professionalName",
  coalesce(a.names ->> 'role', r.name) as "roleName"`;

/** Returns SQL for an id in an entry's details, or null. A text that is no id is not cast. */
const idIn = (name: string) => sql`case
  when a.detail ->> ${sql.lit(name)} ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
  then (a.detail ->> ${sql.lit(name)})::uuid end`;

const entryJoins = sql`
  left join membership m on m.organization_id = a.organization_id and m.person_id = a.person_id
  left join api_key k on k.organization_id = a.organization_id and k.id = a.key_id
  left join membership s on s.organization_id = a.organization_id and s.person_id = a.detail ->> 'memberId'
  left join webhook w on w.organization_id = a.organization_id and w.id = ${idIn('webhookId')}
  left join client_grant g on g.organization_id = a.organization_id and g.id = ${idIn('grantId')}
  left join family f on f.organization_id = g.organization_id and f.id = g.family_id
  left join membership h on h.organization_id = g.organization_id and h.person_id = g.professional_id
  left join role r on r.id = ${idIn('roleId')}
    and (r.organization_id is null or r.organization_id = a.organization_id)`;

/** Limits are literals: for a parameter, the planner assumes a tenth of the log and sorts it. */
async function listEntries(
  db: Queryable,
  { leading, direction }: Search,
  wanted: number,
  reader: Reader,
): Promise<AuditEntry[]> {
  return db.query(sql<AuditEntry>`
    select ${entryColumns(reader)} from (select a.* from audit_entry a where ${leading} ${order(direction)}
      limit ${sql.lit(wanted)}) a ${entryJoins}
    ${order(direction)}`);
}

/**
 * Returns matching entries and the last one checked; null when enough were found, or when fewer were
 * left than may be checked.
 */
async function searchEntries(
  db: Queryable,
  organizationId: string,
  [first, ...others]: [Search, ...Search[]],
  wanted: number,
  reader: Reader,
): Promise<{ rows: AuditEntry[]; seenTo: Position | null }> {
  let best = await searchOnce(db, first, wanted);
  for (const other of others) {
    if (best.seenTo === null) break;
    const result = await searchOnce(db, other, wanted);
    if (result.seenTo === null || isBeyond(result.seenTo, best.seenTo, other.direction)) best = result;
  }
  return { rows: await fetchEntries(db, organizationId, best.positions, first.direction, reader), seenTo: best.seenTo };
}

interface SearchResult {
  positions: Position[];
  seenTo: Position | null;
}

/**
 * The innermost statement has only the compared columns, so that an index with these is enough.
 * Each one repeats the order, so that none is sorted and enough matches end the search.
 * Where the search stopped is read from the same rows: for a later statement, entries that were
 * written meanwhile would move it, and the next search would repeat some. Times are formatted last:
 * those of skipped entries would be too, which takes longest.
 */
async function searchOnce(db: Queryable, search: Search, wanted: number): Promise<SearchResult> {
  const { leading, rest, atMost, direction, needsEntry } = search;
  const rows = await db.query(sql<Position & { isEnd: boolean }>`
    with seen as materialized (
      select a.at, a.id, ${joinConditions(rest)} as is_match from (
        select a.at, a.id, a.key_id, a.person_id, a.action, a.status
          ${needsEntry ? sql`, a.code, a.address, a.detail, a.names` : sql``} from audit_entry a
        where ${leading} ${order(direction)} limit ${sql.lit(atMost)}
      ) a ${order(direction)}
    ), found as materialized (
      select a.at, a.id from seen a where a.is_match ${order(direction)} limit ${sql.lit(wanted)}
    ), last as (
      select a.at, a.id from seen a
      where (select count(*) from found) < ${sql.lit(wanted)} and (select count(*) from seen) = ${sql.lit(atMost)}
      ${order(direction === 'older' ? 'newer' : 'older')} limit 1
    )
    select ${isoMicroseconds} as at, a.id, a.is_end as "isEnd"
    from (select f.*, false as is_end from found f union all select l.*, true from last l) a
    ${order(direction)}`);
  const last = rows.find(({ isEnd }) => isEnd);
  return { positions: rows.filter(({ isEnd }) => !isEnd), seenTo: last === undefined ? null : getPosition(last) };
}

/** Returns whether one position is after the other. */
const isBeyond = (one: Position, other: Position, direction: Direction): boolean =>
  direction === 'older' ? one.at < other.at : one.at > other.at;

/**
 * Fetches entries whose positions are known. They are between the first and the last one, so few
 * partitions are read. Values are literals too: for parameters the planner would read whole
 * partitions.
 */
async function fetchEntries(
  db: Queryable,
  organizationId: string,
  positions: Position[],
  direction: Direction,
  reader: Reader,
): Promise<AuditEntry[]> {
  if (positions.length === 0) return [];
  const [ids, moments] = [positions.map(({ id }) => id), positions.map(({ at }) => at)];
  const [earliest = '', latest = ''] = [moments[0], moments.at(-1)].sort();
  return db.query(sql<AuditEntry>`
    select ${entryColumns(reader)}
    from (
      select a.* from unnest(${listed(ids)}::uuid[], ${listed(moments)}::timestamptz[]) as position (id, at)
      join audit_entry a on a.organization_id = ${organizationId}::uuid and a.id = position.id and a.at = position.at
        and a.at between ${sql.lit(earliest)}::timestamptz and ${sql.lit(latest)}::timestamptz
    ) a ${entryJoins}
    ${order(direction)}`);
}

/** Returns an array literal of ids or times, which contain no character that needs escaping. */
const listed = (texts: string[]) => sql.lit(`{${texts.join(',')}}`);
