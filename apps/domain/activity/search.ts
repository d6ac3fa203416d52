import type { EntityManager } from '@mikro-orm/postgresql';
import { allOf, literal, runStatement, sql } from '../db/statement.ts';
import {
  type ActivityFilter,
  type Direction,
  type From,
  type Place,
  planSearches,
  type Search,
} from './plan-search.ts';

export {
  type ActivityFilter,
  everything,
  linesSearched,
  type Outcome,
  type Place,
  type TextMatch,
} from './plan-search.ts';

/** A line, as it is shown: names are today's, null when the log alone remembers what they named. */
export interface ActivityEntry {
  id: string;
  /** ISO, UTC, microseconds. */
  at: string;
  personId: string | null;
  personName: string | null;
  keyId: string | null;
  keyLabel: string | null;
  keyHint: string | null;
  action: string;
  /** HTTP status of a read's answer; null for what people and the system did. */
  status: number | null;
  /** The refusal's code; null when there was none. */
  code: string | null;
  address: string | null;
  /** Above 1 for refused calls alone, which share a line per key and minute. */
  count: number;
  detail: Record<string, unknown> | null;
  /** Today's name of the member that `detail.memberId` names. */
  memberName: string | null;
  /** The description of the webhook that `detail.webhookId` names, or its host. */
  webhookName: string | null;
  /** The family of the access that `detail.grantId` names; null for those who may not see clients. */
  clientName: string | null;
  /** Today's name of the role that `detail.roleId` names. */
  roleName: string | null;
}

/** Who reads the log: names of families are looked up only for those who may see clients. */
export interface Reader {
  maySeeClients: boolean;
}

/** The default, so that a caller that does not think of it shows no family's name. */
export const seesNoClients: Reader = { maySeeClients: false };

/**
 * One page, newest first. `newer` and `older` are where the neighboring pages begin, null at an
 * end; `isWhole` false: lines were passed over for a while and the search may go on from `older`.
 */
export interface ActivityPage {
  entries: ActivityEntry[];
  newer: Place | null;
  older: Place | null;
  isWhole: boolean;
}

/**
 * A page of an organization's log. However many lines it has, it takes the time of one page: one
 * condition leads through an index that is in the log's order (0014, 0017), and whatever else is
 * asked for is looked up in so many lines of it (`linesSearched`).
 *
 * @param from - where the page begins, and which way it goes; null: at the newest line.
 */
export async function listActivity(
  em: EntityManager,
  organizationId: string,
  filter: ActivityFilter,
  from: From | null,
  pageSize: number,
  reader: Reader = seesNoClients,
): Promise<ActivityPage> {
  const searches = planSearches(organizationId, filter, from);
  const [{ direction, rest }] = searches;
  const { rows, seenTo } =
    rest.length === 0
      ? { rows: await listLines(em, searches[0], pageSize + 1, reader), seenTo: null }
      : await searchLines(em, organizationId, searches, pageSize + 1, reader);
  const hasMore = rows.length > pageSize;
  const found = rows.slice(0, pageSize);
  const last = found.at(-1);
  const onward = hasMore && last !== undefined ? placeOf(last) : seenTo;
  const back = from === null ? null : found[0] === undefined ? from.place : placeOf(found[0]);
  return {
    entries: direction === 'older' ? found : found.reverse(),
    ...(direction === 'older' ? { newer: back, older: onward } : { newer: onward, older: back }),
    isWhole: seenTo === null,
  };
}

/** One line of an organization; null when it has none of that id. */
export async function findActivityEntry(
  em: EntityManager,
  organizationId: string,
  id: string,
  reader: Reader = seesNoClients,
): Promise<ActivityEntry | null> {
  const rows = await runStatement<ActivityEntry>(
    em,
    sql`
    select ${entryColumns(reader)} from activity a ${entryJoins}
    where a.id = ${id}::uuid and a.organization_id = ${organizationId}::uuid`,
  );
  return rows[0] ?? null;
}

const placeOf = ({ at, id }: Place): Place => ({ at, id });

const order = (direction: Direction) =>
  direction === 'older' ? sql`order by a.at desc, a.id desc` : sql`order by a.at, a.id`;

const isoMicroseconds = sql`to_char(a.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

const entryColumns = ({ maySeeClients }: Reader) => sql`
  a.id, ${isoMicroseconds} as at, a.person_id as "personId", m.name as "personName", a.key_id as "keyId",
    k.label as "keyLabel", k.hint as "keyHint",
  a.action, a.status, a.code, host(a.address) as address, a.count, a.detail, s.name as "memberName",
  coalesce(nullif(left(regexp_replace(w.description, '\\s+', ' ', 'g'), 100), ''),
    split_part(w.url, '/', 3)) as "webhookName",
  ${maySeeClients ? sql`f.name` : sql`null`} as "clientName", r.name as "roleName"`;

/** An id of a line's details; null when there is none. Details are written by this service alone. */
const idIn = (name: string) => sql`(a.detail ->> ${literal(name)})::uuid`;

const entryJoins = sql`
  left join membership m on m.organization_id = a.organization_id and m.person_id = a.person_id
  left join api_key k on k.organization_id = a.organization_id and k.id = a.key_id
  left join membership s on s.organization_id = a.organization_id and s.person_id = a.detail ->> 'memberId'
  left join webhook w on w.organization_id = a.organization_id and w.id = ${idIn('webhookId')}
  left join client_grant g on g.organization_id = a.organization_id and g.id = ${idIn('grantId')}
  left join family f on f.organization_id = g.organization_id and f.id = g.family_id
  left join role r on r.id = ${idIn('roleId')}
    and (r.organization_id is null or r.organization_id = a.organization_id)`;

/** Limits are literals: the planner takes a parameter for a tenth of the log, and then sorts it. */
async function listLines(
  em: EntityManager,
  { leading, direction }: Search,
  wanted: number,
  reader: Reader,
): Promise<ActivityEntry[]> {
  return runStatement<ActivityEntry>(
    em,
    sql`
    select ${entryColumns(reader)} from (select a.* from activity a where ${leading} ${order(direction)}
      limit ${literal(wanted)}) a ${entryJoins}
    ${order(direction)}`,
  );
}

/**
 * Lines that fit, and the last one looked at; null when there was none after it, or so many were
 * found as are wanted.
 */
async function searchLines(
  em: EntityManager,
  organizationId: string,
  [first, ...others]: [Search, ...Search[]],
  wanted: number,
  reader: Reader,
): Promise<{ rows: ActivityEntry[]; seenTo: Place | null }> {
  let best = await look(em, first, wanted);
  for (const other of others) {
    if (best.seenTo === null) break;
    const looked = await look(em, other, wanted);
    if (looked.seenTo === null || isBeyond(looked.seenTo, best.seenTo, other.direction)) best = looked;
  }
  return { rows: await fetchLines(em, organizationId, best.places, first.direction, reader), seenTo: best.seenTo };
}

interface Looked {
  places: Place[];
  seenTo: Place | null;
}

/**
 * The inner statement has no column but those that are compared, so that an index which holds them
 * is enough. Fetching lines here too would take the planner longer than all the rest.
 */
async function look(em: EntityManager, search: Search, wanted: number): Promise<Looked> {
  const { leading, rest, atMost, direction, needsLine } = search;
  const places = await runStatement<Place>(
    em,
    sql`
    select ${isoMicroseconds} as at, a.id
    from (
      select a.at, a.id, a.key_id, a.person_id, a.action, a.status
        ${needsLine ? sql`, a.code, a.address, a.detail` : sql``} from activity a
      where ${leading} ${order(direction)} limit ${literal(atMost)}
    ) a
    where ${allOf(rest)} ${order(direction)} limit ${literal(wanted)}`,
  );
  return { places, seenTo: places.length === wanted ? null : await findLastSeen(em, search) };
}

/**
 * The last line that a search has looked at, when there were more; null when it has seen them all.
 * Times become texts outside: within, those passed over would too, which takes longest.
 */
async function findLastSeen(em: EntityManager, { leading, atMost, direction }: Search): Promise<Place | null> {
  const rows = await runStatement<Place>(
    em,
    sql`
    select ${isoMicroseconds} as at, a.id
    from (select a.at, a.id from activity a where ${leading} ${order(direction)} offset ${literal(atMost - 1)}
      limit 2) a
    ${order(direction)}`,
  );
  const [last, next] = rows;
  return last === undefined || next === undefined ? null : placeOf(last);
}

/** Whether one place comes after the other. */
const isBeyond = (one: Place, other: Place, direction: Direction): boolean =>
  direction === 'older' ? one.at < other.at : one.at > other.at;

/**
 * Lines whose places are known. They lie between the first and the last of them, so few partitions
 * are asked. Literals too: for parameters the planner would read whole partitions.
 */
async function fetchLines(
  em: EntityManager,
  organizationId: string,
  places: Place[],
  direction: Direction,
  reader: Reader,
): Promise<ActivityEntry[]> {
  if (places.length === 0) return [];
  const [ids, moments] = [places.map(({ id }) => id), places.map(({ at }) => at)];
  const [earliest = '', latest = ''] = [moments[0], moments.at(-1)].sort();
  return runStatement<ActivityEntry>(
    em,
    sql`
    select ${entryColumns(reader)}
    from (
      select a.* from unnest(${listed(ids)}::uuid[], ${listed(moments)}::timestamptz[]) as place (id, at)
      join activity a on a.organization_id = ${organizationId}::uuid and a.id = place.id and a.at = place.at
        and a.at between ${literal(earliest)}::timestamptz and ${literal(latest)}::timestamptz
    ) a ${entryJoins}
    ${order(direction)}`,
  );
}

/** An array literal of ids or times, which have no sign that needs escaping in one. */
const listed = (texts: string[]) => literal(`{${texts.join(',')}}`);
