import { allOf, arrayOf, type SqlPart, sql } from '../db/statement.ts';

/** A filter of the log. Fields that are not null must match; `from` is inclusive, `to` is not. */
export interface ActivityFilter {
  keyId: string | null;
  personId: string | null;
  action: string | null;
  outcome: Outcome | null;
  /**
   * The id of the object of a row: a webhook, client access, member, role, event, key and so on.
   */
  objectId: string | null;
  /** An IP address or a range of them (CIDR). */
  address: string | null;
  text: TextMatch | null;
  from: Date | null;
  to: Date | null;
}

/** What a searched text may name: ids of objects, and actions whose titles contain it. */
export interface TextMatch {
  ids: string[];
  actions: string[];
  /** The text itself, which may be a code, an id or an address. */
  exact: string;
}

/** `answered`: reads that succeeded; `refused`: denied reads; `action`: anything but a read. */
export type Outcome = 'answered' | 'refused' | 'action';

export const everything: ActivityFilter = {
  keyId: null,
  personId: null,
  action: null,
  outcome: null,
  objectId: null,
  address: null,
  text: null,
  from: null,
  to: null,
};

/** A position between two rows by time, then id, newest first. `at`: ISO, UTC, microseconds. */
export interface Place {
  at: string;
  id: string;
}

export type Direction = 'older' | 'newer';

/** Where a page begins, and its direction. */
export interface From {
  place: Place;
  direction: Direction;
}

/**
 * The most rows that one search may check, for conditions that rarely match together. `inIndex`
 * where one index contains both, `inLines` where the rows themselves are read, which takes ten
 * times as long for each.
 */
export const linesSearched = { inIndex: 20_000, inLines: 2_000 };

export type Condition = SqlPart;

export interface Search {
  /** What the index finds, including the range of time and position. */
  leading: Condition;
  /** What is checked in the rows found. */
  rest: Condition[];
  /** Whether `rest` compares columns that no index contains. */
  needsLine: boolean;
  /** The most rows that are found when others are checked in them. */
  atMost: number;
  direction: Direction;
}

/** The conditions of a filter, besides the time. */
type ConditionName = 'key' | 'person' | 'action' | 'status' | 'object' | 'address' | 'text';

/** A condition that an index begins with, what it answers, and the index's other columns. */
interface Lead {
  answers: ConditionName[];
  holds: ConditionName[];
  condition: Condition;
}

const statusOf: Record<Outcome, Condition> = {
  answered: sql`a.status < 400`,
  refused: sql`a.status >= 400`,
  action: sql`a.status is null`,
};

/** Returns how to search: one way, or several to try in turn. */
export function planSearches(organizationId: string, filter: ActivityFilter, from: From | null): [Search, ...Search[]] {
  const asked = conditionsOf(filter);
  const range = [
    sql`a.organization_id = ${organizationId}::uuid`,
    filter.from && sql`a.at >= ${filter.from.toISOString()}::timestamptz`,
    filter.to && sql`a.at < ${filter.to.toISOString()}::timestamptz`,
    from && beyond(from),
  ];
  const plan = ({ answers, holds, condition }: Lead): Search => {
    const open = [...asked].filter(([name]) => !answers.includes(name));
    return {
      leading: allOf([...range, condition]),
      rest: open.map(([, each]) => each),
      needsLine: open.some(([name]) => name === 'object' || name === 'address' || name === 'text'),
      atMost: open.every(([name]) => holds.includes(name)) ? linesSearched.inIndex : linesSearched.inLines,
      direction: from?.direction ?? 'older',
    };
  };
  const [first, ...others] = listLeads(filter, asked);
  return [plan(first), ...others.map(plan)];
}

function conditionsOf(filter: ActivityFilter): Map<ConditionName, Condition> {
  const { keyId, personId, action, outcome, objectId, address, text } = filter;
  const asked = new Map<ConditionName, Condition>();
  if (keyId !== null) asked.set('key', sql`a.key_id = ${keyId}::uuid`);
  if (action !== null) asked.set('action', sql`a.action = ${action}`);
  if (personId !== null) asked.set('person', sql`a.person_id = ${personId}`);
  if (outcome !== null) asked.set('status', statusOf[outcome]);
  if (objectId !== null) asked.set('object', isAbout([objectId]));
  if (address !== null) asked.set('address', sql`a.address <<= ${address}::inet`);
  if (text !== null) asked.set('text', matches(text));
  return asked;
}

/** Returns a condition that a row names one of these ids as person, key or value of its details. */
const isAbout = (ids: string[]): Condition => sql`(
  a.person_id = any (${arrayOf(ids)}::text[]) or a.key_id::text = any (${arrayOf(ids)}::text[])
  or exists (select from jsonb_each_text(a.detail) d where d.value = any (${arrayOf(ids)}::text[])))`;

const matches = ({ ids, actions, exact }: TextMatch): Condition => sql`(
  a.action = any (${arrayOf(actions)}::text[]) or a.action = ${exact} or a.code = ${exact} or a.id::text = ${exact}
  or host(a.address) = ${exact} or ${isAbout([...ids, exact])})`;

/**
 * Returns the conditions to search by, the most selective first. Actions and refusals are few, and
 * their indexes include the other columns. Of a key, an action and a person, any may be rare, so
 * each leads in turn.
 */
function listLeads({ action, outcome }: ActivityFilter, asked: Map<ConditionName, Condition>): [Lead, ...Lead[]] {
  const named = asked.get('action');
  const isAction = action !== null && !action.startsWith('api.') && (outcome === null || outcome === 'action');
  if (named !== undefined && isAction && asked.size > 1)
    // The condition on status is redundant, but lets PostgreSQL use the partial index of actions.
    return [
      { answers: ['action', 'status'], holds: ['key', 'person'], condition: sql`${named} and ${statusOf.action}` },
    ];
  if (outcome === 'refused')
    return [{ answers: ['status'], holds: ['key', 'person', 'action'], condition: statusOf.refused }];
  if (outcome === 'action') return [{ answers: ['status'], holds: ['key', 'person'], condition: statusOf.action }];
  const [first, ...others] = (['key', 'action', 'person'] as const).flatMap((name): Lead[] => {
    const condition = asked.get(name);
    return condition === undefined ? [] : [{ answers: [name], holds: name === 'key' ? ['status'] : [], condition }];
  });
  // Nearly all rows are answered reads, so they have no separate index: the whole log leads.
  if (first === undefined) return [{ answers: ['status'], holds: [], condition: asked.get('status') ?? sql`true` }];
  return [first, ...others];
}

/** The comparison of the time alone is redundant, but excludes partitions. */
function beyond({ place: { at, id }, direction }: From): Condition {
  return direction === 'older'
    ? sql`a.at <= ${at}::timestamptz and (a.at, a.id) < (${at}::timestamptz, ${id}::uuid)`
    : sql`a.at >= ${at}::timestamptz and (a.at, a.id) > (${at}::timestamptz, ${id}::uuid)`;
}
