import { sql } from 'kysely';
import { permissions as allPermissions, type Permission } from '../contract/scopes.ts';
import type { Queryable, Transaction } from '../db/database.ts';
import { type Authority, memberPermissions } from './authority.ts';
import { consoleAccess, isConfirmed } from './console-access.ts';
import { OrganizationError } from './errors.ts';

/** A permission that a change of members, roles or seats requires; each change names its own. */
type ManagingPermission = 'org.members.manage' | 'org.roles.manage' | 'org.seats.manage';

/** The caller of a change, and what they can grant. An operator can grant what an owner can. */
export interface Actor {
  personId: string | null;
  permissions: ReadonlySet<Permission>;
  isOwner: boolean;
}

/** A member with what their roles give (`permissions`), whatever their status. */
export interface MemberAccess {
  personId: string;
  name: string;
  email: string;
  title: string | null;
  status: 'invited' | 'active' | 'suspended' | 'left';
  /** Whether they ever accepted their membership; if not, a suspended member was only invited. */
  accepted: boolean;
  permissions: Permission[];
  isOwner: boolean;
}

const rejections = {
  'org.members.manage': ['may_not_manage_members', 'manage members'],
  'org.roles.manage': ['may_not_manage_roles', 'manage roles'],
  'org.seats.manage': ['may_not_manage_seats', 'manage seats and clients'],
} as const;

/**
 * Returns the caller of a change.
 *
 * @throws OrganizationError unless the caller is an operator, or an active member with the
 * permission.
 */
export async function getActor(
  tx: Transaction,
  organizationId: string,
  by: Authority,
  needed: ManagingPermission,
): Promise<Actor> {
  if (by === 'orgctl') return { personId: null, permissions: new Set(allPermissions), isOwner: true };
  const member = await findMember(tx, organizationId, by.personId);
  if (member?.status === 'active' && member.permissions.includes(needed))
    return { personId: member.personId, permissions: new Set(member.permissions), isOwner: member.isOwner };
  const [reason, what] = rejections[needed];
  throw new OrganizationError(reason, `Only an active member with a role that may ${what} (${needed}) can do this.`);
}

/** The columns of a member `m` for `MemberAccess`, besides the id. */
export const memberColumns = sql`
  m.name, m.email, m.title, m.status, m.accepted, array(${memberPermissions}) as permissions,
  exists (select from membership_role mr join role r on r.id = mr.role_id
    where mr.organization_id = m.organization_id and mr.person_id = m.person_id and r.organization_id is null
      and r.key = 'owner') as "isOwner"`;

/** Returns a member of any status, or null when the organization never had them. */
export async function findMember(
  db: Queryable,
  organizationId: string,
  personId: string,
): Promise<MemberAccess | null> {
  const rows = await db.query(sql<MemberAccess>`
    select m.person_id as "personId", ${memberColumns}
    from membership m where m.organization_id = ${organizationId} and m.person_id = ${personId}`);
  return rows[0] ?? null;
}

/**
 * Returns a member who has not left.
 *
 * @throws OrganizationError `no_such_member`
 */
export async function getMember(tx: Transaction, organizationId: string, personId: string): Promise<MemberAccess> {
  const member = await findMember(tx, organizationId, personId);
  if (member === null || member.status === 'left')
    throw new OrganizationError('no_such_member', 'The organization has no such member.');
  return member;
}

/**
 * Allows only owners to change owners: an administrator has every permission of an owner, but not
 * this.
 *
 * @throws OrganizationError `only_owners`
 */
export function assertMayChange(actor: Actor, member: Pick<MemberAccess, 'isOwner'>): void {
  if (!member.isOwner || actor.isOwner) return;
  throw new OrganizationError('only_owners', 'Only an owner can change or appoint an owner.');
}

/**
 * Throws when the caller grants what they do not have.
 *
 * @throws OrganizationError `not_held`
 */
export function assertHasPermissions(actor: Actor, granted: readonly Permission[]): void {
  const missing = granted.filter((permission) => !actor.permissions.has(permission));
  if (missing.length === 0) return;
  throw new OrganizationError('not_held', `You can’t assign permissions that you don’t have: ${missing.join(', ')}.`);
}

/**
 * Rejects a change that removes the owner `gone` unless another owner who can act is left. An
 * imported owner is active but cannot act before their sign-in is confirmed, so they count only
 * beside an owner who could not act either. Call it under `lockOrganization`, before the change.
 *
 * @throws OrganizationError `last_owner`
 */
export async function assertOwnerRemains(tx: Queryable, organizationId: string, gone: string): Promise<void> {
  const rows = await tx.query(sql`
    select m.person_id from membership m
    join membership_role mr on mr.organization_id = m.organization_id and mr.person_id = m.person_id
    join role r on r.id = mr.role_id and r.organization_id is null and r.key = 'owner'
    join membership g on g.organization_id = m.organization_id and g.person_id = ${gone}
    where m.organization_id = ${organizationId} and m.person_id <> ${gone} and m.status = 'active'
      and (${consoleAccess()} = 'open' or not ${isConfirmed('g')})
    limit 1`);
  if (rows.length > 0) return;
  throw new OrganizationError(
    'last_owner',
    'The last active owner can’t leave or lose the role. First assign the role Owner to a member who can sign in.',
  );
}
