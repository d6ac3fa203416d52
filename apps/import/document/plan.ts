import type { Client } from 'pg';
import type { Changes } from './merge.ts';
import {
  families,
  familyDays,
  getOrganizationColumn,
  grants,
  isBegunFirst,
  isInserted,
  isUpdated,
  type Merge,
  members,
  organizations,
  referralCodes,
  referralInvoices,
  referrals,
  removedFamilyDays,
  roles,
  seatPlans,
  seats,
  subscriptions,
} from './merge-steps.ts';

/**
 * What a merge would change and which events that would create, found by the merge's own conditions
 * without a write or a lock. A merge that is rolled back would write as much WAL and as many dead rows as
 * the import, and hold its locks.
 */

/** The changed rows of one kind in one organization. */
export interface Change {
  kind: string;
  change: keyof Changes;
  organizationId: string;
  rows: number;
}

/** The events of one type in one organization, and the deliveries that they create now. */
export interface PlannedEvents {
  organizationId: string;
  type: string;
  events: number;
  deliveries: number;
}

/** In the order of the merge. `name` is what a listed change calls one of the kind. */
const steps: [step: Merge, name: string][] = [
  [organizations, 'organization'],
  [roles, 'role'],
  [members, 'member'],
  [families, 'family'],
  [seatPlans, 'seat plan'],
  [subscriptions, 'subscription'],
  [grants, 'grant'],
  [seats, 'seat'],
  [referralCodes, 'referral code'],
  [referrals, 'referral'],
  [referralInvoices, 'referral invoice'],
  [familyDays, 'family day'],
];

/** The key that a role has after the import. */
const keyAfter = `coalesce((select f.key from staged_role f
  where f.organization_id = r.organization_id and f.id = r.id), r.key)`;

/** From here on, rows are called `id`, and columns that differ `columns`: never a value. */
interface Planned {
  kind: string;
  change: keyof Changes;
  name: string;
  sql: string;
}

const removedRoles = `
  select t.organization_id, concat(t.person_id, ' ', t.role_id) as id, '{}'::text[] as columns
  from membership_role t join staged_member m on t.organization_id = m.organization_id and t.person_id = m.user_id
  join role r on r.id = t.role_id where not ${keyAfter} = any (m.role_keys)`;

const addedRoles = `
  select m.organization_id, concat(m.user_id, ' ', k.key) as id, '{}'::text[] as columns
  from staged_member m cross join unnest(m.role_keys) as k (key)
  where not exists (select from membership_role t join role r on r.id = t.role_id
    where t.organization_id = m.organization_id and t.person_id = m.user_id and ${keyAfter} = k.key)`;

const removedDays = `
  select t.organization_id, concat(t.family_id, ' ', t.day) as id, '{}'::text[] as columns
  from family_day t join ${removedFamilyDays.families} on ${removedFamilyDays.condition}`;

function planStep([step, name]: [Merge, string]): Planned[] {
  const { kind, table, source, columns } = step;
  const organizationColumn = getOrganizationColumn(step);
  const ids = step.key.filter((column, _, all) => all.length === 1 || column !== 'organization_id');
  const select = (alias: string, differing: string) =>
    `select ${alias}.${organizationColumn} as organization_id,
      concat_ws(' ', ${ids.map((column) => `${alias}.${column}`).join(', ')}) as id, ${differing} as columns`;
  const differing = columns.map((column) => `case when t.${column} is distinct from s.${column} then '${column}' end`);
  return [
    {
      kind,
      change: 'updated',
      name,
      sql: `${select('t', `array_remove(array[${differing.join(', ')}], null)`)}
        from ${table} t join ${source} s on ${isUpdated(step)}`,
    },
    {
      kind,
      change: 'inserted',
      name,
      sql: `${select('s', `'{}'::text[]`)} from ${source} s where ${isInserted(step)}`,
    },
  ];
}

const planned: readonly Planned[] = [
  ...steps.slice(0, 3).flatMap(planStep),
  { kind: 'memberRoles', change: 'removed', name: 'member role', sql: removedRoles },
  { kind: 'memberRoles', change: 'inserted', name: 'member role', sql: addedRoles },
  ...steps.slice(3, -1).flatMap(planStep),
  { kind: 'familyDays', change: 'removed', name: 'family day', sql: removedDays },
  ...steps.slice(-1).flatMap(planStep),
];

/** Counts the rows that a merge would change. */
export async function countPlanned(client: Client): Promise<Change[]> {
  const each = planned.map(
    ({ kind, change, sql }) => `select '${kind}' as kind, '${change}' as change, organization_id as "organizationId",
      count(*)::integer as rows from (${sql}) as p group by organization_id`,
  );
  return (await client.query<Change>(each.join('\nunion all\n'))).rows;
}

const verbs: Record<keyof Changes, string> = { inserted: 'insert', updated: 'update', removed: 'delete' };

/** Lists the first changes as `update grant ID: ends_at, status`: ids and columns, never values. */
export async function listPlanned(client: Client, max: number): Promise<string[]> {
  const lines: string[] = [];
  for (const { change, name, sql } of planned) {
    if (lines.length >= max) break;
    const { rows } = await client.query<{ id: string; columns: string[] }>(
      `select id, columns from (${sql}) as p order by organization_id, id limit $1`,
      [max - lines.length],
    );
    for (const { id, columns } of rows)
      lines.push(`${verbs[change]} ${name} ${id}${columns.length === 0 ? '' : `: ${columns.join(', ')}`}`);
  }
  return lines;
}

/** Counts the events that the triggers of grants and seats would create (migration 0008). */
export async function countPlannedEvents(client: Client): Promise<PlannedEvents[]> {
  const { rows } = await client.query<PlannedEvents>(`
    with e (organization_id, type) as (
      select s.organization_id, 'client.started' from staged_grant s
      where s.status = 'active' and (s.ends_at is null or s.ends_at > now()) and ${isInserted(grants)}
      union all
      select t.organization_id, 'client.started' from client_grant t where ${isBegunFirst}
      union all
      select s.organization_id, 'client.started' from client_grant t join staged_grant s on ${isUpdated(grants)}
      where t.status = 'scheduled' and s.status = 'active'
      union all
      select s.organization_id, 'client.ended' from client_grant t join staged_grant s on ${isUpdated(grants)}
      where t.status in ('scheduled', 'active') and s.status = 'ended'
      union all
      select s.organization_id, 'seat.given' from staged_seat s where s.ended_at is null and ${isInserted(seats)}
      union all
      select s.organization_id, 'seat.ended' from seat t join staged_seat s on ${isUpdated(seats)}
      where t.ended_at is null and s.ended_at is not null
      union all
      -- Not in the file: the database ends it with its access.
      select x.organization_id, 'seat.ended' from seat x
      join client_grant t on t.organization_id = x.organization_id and t.id = x.grant_id and t.status = 'active'
      join staged_grant s on s.status = 'ended' and ${isUpdated(grants)}
      where x.ended_at is null and not exists (select from staged_seat y
        where y.organization_id = x.organization_id and y.id = x.id)
    )
    select e.organization_id as "organizationId", e.type, count(*)::integer as events,
      (count(*) * (select count(*) from webhook w where w.organization_id = e.organization_id
        and w.state <> 'deleted' and e.type = any (w.event_types)))::integer as deliveries
    from e group by 1, 2 order by 1, 2`);
  return rows;
}
