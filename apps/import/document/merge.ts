import type { Client } from 'pg';
import {
  families,
  familyDays,
  getOrganizationColumn,
  grants,
  isBegunFirst,
  isInserted,
  isUpdated,
  type Merge,
  memberRoles,
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

/** The changed rows of one kind. `removed` counts only what a complete replacement leaves out. */
export interface Changes {
  inserted: number;
  updated: number;
  removed: number;
}

const people = `
  insert into person (id) select distinct user_id from staged_member
  where not exists (select from person p where p.id = user_id)
  on conflict do nothing`;

const removedMemberRoles = `
  delete from membership_role t using staged_member m
  where t.organization_id = m.organization_id and t.person_id = m.user_id and m.role_keys is not null
    and not exists (select from (${memberRoles}) as s where s.organization_id = t.organization_id
    and s.person_id = t.person_id and s.role_id = t.role_id)
  returning t.organization_id`;

const addedMemberRoles = `
  insert into membership_role (organization_id, person_id, role_id)
  select s.organization_id, s.person_id, s.role_id from (${memberRoles}) as s
  where not exists (select from membership_role t where t.organization_id = s.organization_id
    and t.person_id = s.person_id and t.role_id = s.role_id)
  returning organization_id`;

const deletedFamilyDays = `
  delete from family_day t using ${removedFamilyDays.families}
  where ${removedFamilyDays.condition} returning t.organization_id`;

/** Unique names that move to another row: the old row first gets a name that no other row has. */
const vacated = [
  `update organization t set slug = t.id::text from staged_organization s
   where s.id = t.id and s.slug <> t.slug and exists (select from staged_organization o
     where o.slug = t.slug and o.id <> t.id)`,
  `update role t set key = t.id::text from staged_role s
   where s.organization_id = t.organization_id and s.id = t.id and s.key <> t.key
     and exists (select from staged_role o where o.organization_id = t.organization_id and o.key = t.key
     and o.id <> t.id)`,
  `update referral_code t set code = t.id::text from staged_referral_code s
   where s.organization_id = t.organization_id and s.id = t.id and s.code <> t.code
     and exists (select from staged_referral_code o where o.organization_id = t.organization_id and o.code = t.code
     and o.id <> t.id)`,
];

/** Every writer locks plan, then grant, then seat (migration 0003), here only rows that change. */
const locks = [
  `select from seat_plan p where p.organization_id in (select id from staged_organization)
    order by p.organization_id for no key update`,
  `select from client_grant t
   where t.id in (
     select g.id from staged_grant g join client_grant c on c.organization_id = g.organization_id and c.id = g.id
     where not g.left_alone and (c.kind, c.professional_id, c.since, c.ends_at, c.status, c.end_reason)
       is distinct from (g.kind, g.professional_id, g.since, g.ends_at, g.status, g.end_reason)
     union all
     select s.grant_id from staged_seat s where s.stored and s.stored_ended_at is null and not s.assigned_in_file
     union all
     select t.id from client_grant t where ${isBegunFirst})
   order by t.id for no key update`,
];

/**
 * Writes what is staged. Parents come before children, ends of seats before ends of access, and
 * both before new access and new seats, so that no constraint is violated on the way.
 * `import_change` then has the number of changed rows by kind and organization.
 */
export async function mergeStaged(client: Client, report: (stage: string) => void): Promise<void> {
  for (const lock of locks) await client.query(lock);
  await client.query(`update client_grant t set status = 'active' where ${isBegunFirst}`);
  for (const vacate of vacated) await client.query(vacate);
  report('writing organizations, roles and members');
  await merge(client, organizations);
  await merge(client, roles);
  await client.query(people);
  await merge(client, members);
  await write(client, 'memberRoles', 'removed', removedMemberRoles);
  await write(client, 'memberRoles', 'inserted', addedMemberRoles);
  report('writing families, grants and seats');
  await merge(client, families);
  await merge(client, seatPlans);
  await merge(client, subscriptions);
  await write(client, seats.kind, 'updated', buildUpdate(seats));
  await merge(client, grants);
  await write(client, seats.kind, 'inserted', buildInsert(seats));
  report('writing referrals and family days');
  await merge(client, referralCodes);
  await merge(client, referrals);
  await mergeAtOnce(client, referralInvoices);
  await write(client, familyDays.kind, 'removed', deletedFamilyDays);
  await merge(client, familyDays);
}

/** The table in which `write` counts. The login creates it and grants it to the writing role. */
export const changeTableSql = `
  create temp table import_change (kind text, change text, organization_id uuid, rows bigint) on commit drop`;

async function merge(client: Client, step: Merge): Promise<void> {
  await write(client, step.kind, 'updated', buildUpdate(step));
  await write(client, step.kind, 'inserted', buildInsert(step));
}

/** Merges in one statement: a sum that is checked after each statement may be exact only at its end. */
async function mergeAtOnce(client: Client, step: Merge): Promise<void> {
  await client.query(`
    with updated as (${buildUpdate(step)}), inserted as (${buildInsert(step)})
    insert into import_change
      select '${step.kind}', 'updated', organization_id, count(*) from updated group by organization_id
      union all
      select '${step.kind}', 'inserted', organization_id, count(*) from inserted group by organization_id`);
}

async function write(client: Client, kind: string, change: keyof Changes, statement: string): Promise<void> {
  await client.query(`
    with done as (${statement})
    insert into import_change select '${kind}', '${change}', organization_id, count(*)
      from done group by organization_id`);
}

function buildUpdate(step: Merge): string {
  return `
    update ${step.table} t set ${step.columns.map((column) => `${column} = s.${column}`).join(', ')}
    from ${step.source} s where ${isUpdated(step)}
    returning t.${getOrganizationColumn(step)} as organization_id`;
}

function buildInsert(step: Merge): string {
  const columns = [...step.key, ...(step.fixed ?? []), ...step.columns];
  return `
    insert into ${step.table} (${columns.join(', ')})
    select ${columns.map((column) => `s.${column}`).join(', ')} from ${step.source} s where ${isInserted(step)}
    returning ${getOrganizationColumn(step)} as organization_id`;
}
