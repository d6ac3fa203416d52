import { type RawBuilder, sql } from 'kysely';
import { joinConditions } from '../db/statement.ts';
import { canFail, kindConditions, type Result, resultConditions } from './results.ts';

/** A filter of the log. Fields that are not null must match; `from` is inclusive, `to` is not. */
export interface AuditLogFilter {
  keyId: string | null;
  personId: string | null;
  action: string | null;
  result: Result | null;
  /**
   * The id of the object of an entry: a webhook, client access, member, role, event, key and so on.
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
  /** The text in lower case, which may be a code, an id, an address or part of a name of the time. */
  exact: string;
}

export const everything: AuditLogFilter = {
  keyId: null,
  personId: null,
  action: null,
  result: null,
  objectId: null,
  address: null,
  text: null,
  from: null,
  to: null,
};

/** A position between two entries by time, then id, newest first. `at`: ISO, UTC, microseconds. */
export interface Position {
  at: string;
  id: string;
}

export type Direction = 'older' | 'newer';

/** Where a page begins, and its direction. */
export interface From {
  position: Position;
  direction: Direction;
}

/**
 * The most entries that one search may check, for conditions that rarely match together. `inIndex`
 * where one index contains both, `inEntries` where the entries themselves are read, which takes ten
 * times as long for each.
 */
export const entriesSearched = { inIndex: 20_000, inEntries: 2_000 };

export type Condition = RawBuilder<unknown>;

export interface Search {
  /** What the index finds, including the range of time and position. */
  leading: Condition;
  /** What is checked in the entries found. */
  rest: Condition[];
  /** Whether `rest` compares columns that no index contains. */
  needsEntry: boolean;
  /** The most entries that are found when others are checked in them. */
  atMost: number;
  direction: Direction;
}

/** The conditions of a filter, besides the time. A result has a kind, which indexes begin with. */
type ConditionName = 'key' | 'person' | 'action' | 'kind' | 'denied' | 'failed' | 'object' | 'address' | 'text';

/** Conditions on columns that no index contains. */
const inEntries: ReadonlySet<ConditionName> = new Set(['failed', 'object', 'address', 'text']);

/** A condition that an index begins with, what it covers, and the index's other columns. */
interface Lead {
  covers: ConditionName[];
  includes: ConditionName[];
  condition: Condition;
}

/** Returns how to search: one way, or several to try in turn. */
export function planSearches(organizationId: string, filter: AuditLogFilter, from: From | null): [Search, ...Search[]] {
  const conditions = buildConditions(filter);
  const range = [
    sql`a.organization_id = ${organizationId}::uuid`,
    filter.from && sql`a.at >= ${filter.from.toISOString()}::timestamptz`,
    filter.to && sql`a.at < ${filter.to.toISOString()}::timestamptz`,
    from && beyond(from),
  ];
  const plan = ({ covers, includes, condition }: Lead): Search => {
    const open = [...conditions].filter(([name]) => !covers.includes(name));
    return {
      leading: joinConditions([...range, condition]),
      rest: open.map(([, each]) => each),
      needsEntry: open.some(([name]) => inEntries.has(name)),
      atMost: open.every(([name]) => includes.includes(name)) ? entriesSearched.inIndex : entriesSearched.inEntries,
      direction: from?.direction ?? 'older',
    };
  };
  const [first, ...others] = listLeads(filter, conditions);
  return [plan(first), ...others.map(plan)];
}

function buildConditions(filter: AuditLogFilter): Map<ConditionName, Condition> {
  const { keyId, personId, action, result, objectId, address, text } = filter;
  const conditions = new Map<ConditionName, Condition>();
  if (keyId !== null) conditions.set('key', sql`a.key_id = ${keyId}::uuid`);
  if (action !== null) conditions.set('action', sql`a.action = ${action}`);
  if (personId !== null) conditions.set('person', sql`a.person_id = ${personId}`);
  if (result !== null)
    for (const [name, condition] of buildResultConditions(result, action)) conditions.set(name, condition);
  if (objectId !== null) conditions.set('object', isAbout([objectId]));
  if (address !== null) conditions.set('address', sql`a.address <<= ${address}::inet`);
  if (text !== null) conditions.set('text', matches(text));
  return conditions;
}

function buildResultConditions(result: Result, action: string | null): [ConditionName, Condition][] {
  const { kind, rest } = resultConditions[result];
  const kindCondition: [ConditionName, Condition] = ['kind', kindConditions[kind]];
  if (rest === null) return [kindCondition];
  if (kind === 'rejected') return [kindCondition, ['denied', rest]];
  // An action that cannot fail needs no look at its details.
  if (action === null || canFail(action)) return [kindCondition, ['failed', rest]];
  return result === 'Failed' ? [kindCondition, ['failed', sql`false`]] : [kindCondition];
}

/** Returns a condition that an entry names one of these ids as person, key or value of its details. */
const isAbout = (ids: string[]): Condition => sql`(
  a.person_id = any (${ids}::text[]) or a.key_id::text = any (${ids}::text[])
  or exists (select from jsonb_each_text(case when jsonb_typeof(a.detail) = 'object' then a.detail end) d
    where d.value = any (${ids}::text[])))`;

const matches = ({ ids, actions, exact }: TextMatch): Condition => sql`(
  a.action = any (${actions}::text[]) or a.action = ${exact} or a.code = ${exact} or a.id::text = ${exact}
  or host(a.address) = ${exact} or ${isAbout([...ids, exact])}
  or exists (select from jsonb_each_text(a.names) n where n.value ilike ${containing(exact)}))`;

/** Returns a pattern of `ilike` for texts that contain this one. */
export const containing = (text: string): string => `%${text.replace(/[\\%_]/g, '\\$&')}%`;

/**
 * Returns the conditions to search by, the most selective first. Actions and error responses are
 * few, and their indexes include the other columns. Of a key, an action and a person, any may be
 * rare, so each leads in turn.
 */
function listLeads({ action, result }: AuditLogFilter, conditions: Map<ConditionName, Condition>): [Lead, ...Lead[]] {
  const named = conditions.get('action');
  const kind = result === null ? null : resultConditions[result].kind;
  const isAction = action !== null && !action.startsWith('api.') && (kind === null || kind === 'action');
  if (named !== undefined && isAction && conditions.size > 1)
    // The condition on status is redundant, but lets PostgreSQL use the partial index of actions.
    return [
      {
        covers: ['action', 'kind'],
        includes: ['key', 'person'],
        condition: sql`${named} and ${kindConditions.action}`,
      },
    ];
  if (kind === 'rejected')
    return [{ covers: ['kind'], includes: ['key', 'person', 'action', 'denied'], condition: kindConditions.rejected }];
  const [first, ...others] = (['key', 'action', 'person'] as const).flatMap((name): Lead[] => {
    const condition = conditions.get(name);
    return condition === undefined ? [] : [{ covers: [name], includes: name === 'key' ? ['kind'] : [], condition }];
  });
  const byKind: Lead = { covers: ['kind'], includes: ['key', 'person'], condition: kindConditions.action };
  // Whether an action failed is in no index, so the entries of a key or a person may be fewer.
  if (kind === 'action') return conditions.has('failed') && first ? [byKind, first, ...others] : [byKind];
  // Nearly all entries are answered reads, so they have no separate index: the whole log leads.
  if (first === undefined) return [{ covers: ['kind'], includes: [], condition: conditions.get('kind') ?? sql`true` }];
  return [first, ...others];
}

/** The comparison of the time alone is redundant, but excludes partitions. */
function beyond({ position: { at, id }, direction }: From): Condition {
  return direction === 'older'
    ? sql`a.at <= ${at}::timestamptz and (a.at, a.id) < (${at}::timestamptz, ${id}::uuid)`
    : sql`a.at >= ${at}::timestamptz and (a.at, a.id) > (${at}::timestamptz, ${id}::uuid)`;
}
