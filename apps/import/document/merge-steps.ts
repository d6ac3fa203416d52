/** What a merge changes, and the conditions by which it and the plan of a dry run find the same rows. */

/** One table and the staged rows that match its rows by key. Only rows that differ are written. */
export interface Merge {
  kind: string;
  table: string;
  source: string;
  key: readonly string[];
  /** Columns that may change. */
  columns: readonly string[];
  /** Columns that are set once, when the row is created. */
  fixed?: readonly string[];
  /** A condition on staged rows (`s`) that may change a row of the table (`t`). */
  updatable?: string;
}

const byId = ['organization_id', 'id'] as const;

/** Reads rows from `staged_<table>` unless a source is named. */
const from = (table: string, kind: string, fields: Pick<Merge, 'columns'> & Partial<Merge>): Merge => ({
  kind,
  table,
  source: `staged_${table}`,
  key: byId,
  ...fields,
});

export const organizations = from('organization', 'organizations', {
  key: ['id'],
  columns: ['name', 'slug', 'kind', 'status', 'created_at'],
});
export const roles = from('role', 'roles', { columns: ['key', 'name', 'description', 'permissions'] });
export const members = from('membership', 'members', {
  source: '(select organization_id, position, user_id as person_id, name, email, title, status from staged_member)',
  key: ['organization_id', 'person_id'],
  columns: ['name', 'email', 'title', 'status'],
});
export const families = from('family', 'families', { columns: ['name'] });
/** A seat needs its organization's plan, so every organization has one, even with no seats. */
export const seatPlans = from('seat_plan', 'seatPlans', {
  source: `(
    select organization_id, invoiced, price_currency, price_cents from staged_seat_plan
    union all
    select o.id, 0, null, null from staged_organization o
    where not exists (select from staged_seat_plan s where s.organization_id = o.id)
      and not exists (select from seat_plan p where p.organization_id = o.id))`,
  key: ['organization_id'],
  columns: ['invoiced', 'price_currency', 'price_cents'],
});
export const subscriptions = from('subscription', 'subscriptions', {
  columns: ['status', 'quantity', 'renews_at', 'cancel_at_period_end'],
});
// The maintenance loop may end a grant and its seat between the check and the write; the last
// condition is evaluated again then.
export const seats = from('seat', 'seats', {
  columns: ['given_at', 'ended_at', 'end_reason'],
  fixed: ['grant_id', 'family_id'],
  updatable: 'not s.left_alone and not (t.ended_at is not null and s.ended_at is null)',
});
export const grants = from('client_grant', 'grants', {
  source: 'staged_grant',
  columns: ['kind', 'professional_id', 'since', 'ends_at', 'status', 'end_reason'],
  fixed: ['family_id'],
  updatable: `not s.left_alone and (t.status in (s.status, 'scheduled') or t.status = 'active' and s.status = 'ended')`,
});
/**
 * The condition on stored access (`t`) that begins before the rest is written, because the import also ends it (both
 * have an event) or because a seat of the file needs it.
 */
export const isBegunFirst = `t.status = 'scheduled' and (
  exists (select from staged_grant s where s.organization_id = t.organization_id and s.id = t.id and s.status = 'ended')
  or exists (select from staged_seat s where s.organization_id = t.organization_id and s.grant_id = t.id
      and s.grant_status = 'active')
    and not exists (select from staged_grant s where s.organization_id = t.organization_id and s.id = t.id))`;
export const referralCodes = from('referral_code', 'referralCodes', { columns: ['code', 'link', 'label', 'active'] });
export const referrals = from('referral', 'referrals', { columns: ['code_id', 'state'] });
export const referralInvoices = from('referral_invoice', 'referralInvoices', {
  columns: ['month', 'currency', 'share_cents'],
});
export const familyDays = from('family_day', 'familyDays', {
  key: ['organization_id', 'family_id', 'day'],
  columns: [
    'messages',
    'calm_messages',
    'exchanges',
    'exchanges_on_time',
    'expenses_due',
    'expenses_answered_in_14_days',
  ],
});

/** The exact roles of each mentioned member with `roleKeys` after the import. */
export const memberRoles = `
  select distinct m.organization_id, m.user_id as person_id, r.id as role_id
  from staged_member m join role r on r.key = any (m.role_keys) and (r.organization_id is null
    or r.organization_id = m.organization_id)`;

/** Days (`t`) that the file does not have, of mentioned families of organizations with `familyDays` (`m`). */
export const removedFamilyDays = {
  families: `(
    select f.organization_id, f.id as family_id from staged_family f
    join staged_organization o on o.position = f.organization where o.has_family_days
    union
    select d.organization_id, d.family_id from staged_family_day d
  ) as m`,
  condition: `t.organization_id = m.organization_id and t.family_id = m.family_id
    and not exists (select from staged_family_day s where s.organization_id = t.organization_id
    and s.family_id = t.family_id and s.day = t.day)`,
};

export const getOrganizationColumn = (step: Merge) => (step.table === 'organization' ? 'id' : 'organization_id');

const sameKey = (step: Merge) => step.key.map((column) => `t.${column} = s.${column}`).join(' and ');

/** The condition on a row of the table (`t`) and a staged one (`s`) that changes it. */
export function isUpdated(step: Merge): string {
  const of = (alias: string) => `row(${step.columns.map((column) => `${alias}.${column}`).join(', ')})`;
  return `${sameKey(step)} and ${of('t')} is distinct from ${of('s')} and ${step.updatable ?? 'true'}`;
}

/** The condition on a staged row (`s`) that becomes a new one. */
export const isInserted = (step: Merge) => `not exists (select from ${step.table} t where ${sameKey(step)})`;
