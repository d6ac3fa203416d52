import type { EntityManager } from '@mikro-orm/postgresql';
import { type RawBuilder, sql } from 'kysely';

/** Which lines: every field that is not null must fit. Times are from `from` on and before `to`. */
export interface ActivityFilter {
  keyId: string | null;
  personId: string | null;
  action: string | null;
  outcome: Outcome | null;
  from: Date | null;
  to: Date | null;
}

/** `answered`: reads that were answered; `refused`: reads that were not; `deed`: what people and the system did, which has no HTTP status. */
export type Outcome = 'answered' | 'refused' | 'deed';

export const everything: ActivityFilter = {
  ...{ keyId: null, personId: null, action: null, outcome: null, from: null, to: null },
};

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
}

/** A place between two lines, in the log's order: by time, then id, newest first. */
export interface Place {
  at: string;
  id: string;
}

/** One page, newest first. `newer` and `older` are where the neighbouring pages begin, null at an end; `isWhole` false: lines were passed over for a while and the search may go on from `older`. */
export interface ActivityPage {
  entries: ActivityEntry[];
  newer: Place | null;
  older: Place | null;
  isWhole: boolean;
}

/** Lines that a page may look at: what bounds a search for two things that seldom meet. Measured at 1,000,000 lines: 30 ms. */
export const linesSearched = 20_000;

type Condition = RawBuilder<unknown>;
type Direction = 'older' | 'newer';

/**
 * A page of an organization's log. However many lines it has, it takes the time of one page: one condition leads through an index that is in the log's order (0014), and whatever else is
 * asked for is looked up in at most `linesSearched` lines of it.
 *
 * @param from where the page begins, and which way it goes; null: at the newest line.
 */
export async function listActivity(
  em: EntityManager,
  organizationId: string,
  filter: ActivityFilter,
  from: { place: Place; direction: Direction } | null,
  pageSize: number,
): Promise<ActivityPage> {
  const direction = from?.direction ?? 'older';
  const search = { ...planOf(organizationId, filter, from), direction };
  const { rows } = await entriesSql(search, pageSize + 1).execute(em.getKysely());
  const hasMore = rows.length > pageSize;
  const found = rows.slice(0, pageSize);
  const seenTo = hasMore || search.rest.length === 0 ? null : await findLastSeen(em, search);
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
): Promise<ActivityEntry | null> {
  const { rows } = await sql<ActivityEntry>`
    select ${entryColumns} from activity a ${entryJoins}
    where a.id = ${id}::uuid and a.organization_id = ${organizationId}::uuid`.execute(em.getKysely());
  return rows[0] ?? null;
}

const placeOf = ({ at, id }: Place): Place => ({ at, id });

interface Search {
  /** What the index finds, the range of time and place included. */
  leading: Condition;
  /** What is looked up in the lines found. */
  rest: Condition[];
  direction: Direction;
}

/** The condition that likely leaves the fewest lines leads; each has an index. */
function planOf(
  organizationId: string,
  filter: ActivityFilter,
  from: { place: Place; direction: Direction } | null,
): Omit<Search, 'direction'> {
  const { keyId, personId, action, outcome } = filter;
  const outcomes = {
    answered: sql`a.status < 400`,
    refused: sql`a.status >= 400`,
    deed: sql`a.status is null`,
  };
  // Refusals and deeds are few; so are a key's lines, mostly, and those of a person.
  const isDeed = action !== null && !action.startsWith('api.');
  const conditions = [
    outcome === null || outcome === 'answered' ? null : outcomes[outcome],
    isDeed ? sql`a.action = ${action}` : null,
    keyId === null ? null : sql`a.key_id = ${keyId}::uuid`,
    action === null || isDeed ? null : sql`a.action = ${action}`,
    personId === null ? null : sql`a.person_id = ${personId}`,
    outcome === 'answered' ? outcomes.answered : null,
  ].filter((condition) => condition !== null);
  // Nearly all lines are answered reads, so they have no index of their own: the whole log leads.
  const lead = outcome === 'answered' && conditions.length === 1 ? undefined : conditions.shift();
  const range = [
    sql`a.organization_id = ${organizationId}::uuid`,
    ...(lead === undefined ? [] : [lead]),
    ...(filter.from === null ? [] : [sql`a.at >= ${filter.from.toISOString()}::timestamptz`]),
    ...(filter.to === null ? [] : [sql`a.at < ${filter.to.toISOString()}::timestamptz`]),
    ...(from === null ? [] : [beyond(from)]),
  ];
  return { leading: sql.join(range, sql` and `), rest: conditions };
}

/** The comparison of the time alone says nothing new: it is what leaves out partitions. */
function beyond({ place: { at, id }, direction }: { place: Place; direction: Direction }): Condition {
  return direction === 'older'
    ? sql`a.at <= ${at}::timestamptz and (a.at, a.id) < (${at}::timestamptz, ${id}::uuid)`
    : sql`a.at >= ${at}::timestamptz and (a.at, a.id) > (${at}::timestamptz, ${id}::uuid)`;
}

const order = (direction: Direction) =>
  direction === 'older' ? sql`order by a.at desc, a.id desc` : sql`order by a.at, a.id`;

const isoMicroseconds = sql`to_char(a.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

const entryColumns = sql`
  a.id, ${isoMicroseconds} as at, a.person_id as "personId", m.name as "personName", a.key_id as "keyId", k.label as "keyLabel", k.hint as "keyHint",
  a.action, a.status, a.code, host(a.address) as address, a.count, a.detail, s.name as "memberName"`;

const entryJoins = sql`
  left join membership m on m.organization_id = a.organization_id and m.person_id = a.person_id
  left join api_key k on k.organization_id = a.organization_id and k.id = a.key_id
  left join membership s on s.organization_id = a.organization_id and s.person_id = a.detail ->> 'memberId'`;

/** Limits are literals: the planner takes a parameter for a tenth of the log, and then sorts it. */
function entriesSql({ leading, rest, direction }: Search, atMost: number): RawBuilder<ActivityEntry> {
  const scanned = rest.length === 0 ? atMost : linesSearched;
  const fitting = rest.length === 0 ? sql`` : sql`where ${sql.join(rest, sql` and `)}`;
  return sql<ActivityEntry>`
    select ${entryColumns}
    from (
      select a.* from (select a.* from activity a where ${leading} ${order(direction)} limit ${sql.lit(scanned)}) a
      ${fitting} ${order(direction)} limit ${sql.lit(atMost)}
    ) a ${entryJoins}
    ${order(direction)}`;
}

/** The last line that a search has looked at, when there were more; null when it has seen them all. */
async function findLastSeen(em: EntityManager, { leading, direction }: Search): Promise<Place | null> {
  const { rows } = await sql<Place>`
    select ${isoMicroseconds} as at, a.id from activity a where ${leading} ${order(direction)}
    offset ${sql.lit(linesSearched - 1)} limit 2`.execute(em.getKysely());
  const [last, next] = rows;
  return last === undefined || next === undefined ? null : placeOf(last);
}
