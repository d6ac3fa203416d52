import {
  type Actor,
  assertHasPermissions,
  assertMayChange,
  assertOwnerRemains,
  getActor,
  getMember,
  type MemberAccess,
} from '../access/actor.ts';
import type { Authority } from '../access/authority.ts';
import { OrganizationError } from '../access/errors.ts';
import { Membership, MembershipRole, type Role } from '../access/membership.entity.ts';
import { recordAuditEntry } from '../audit-log/record.ts';
import type { Database, Transaction } from '../db/database.ts';
import { lockOrganization, writeLock } from '../db/locks.ts';
import { endSessionsWithoutAccess } from '../identity/sessions.ts';
import { getRole } from './roles.ts';

/**
 * Changes of members: their names, and whether they may act. Each requires `org.members.manage`,
 * and an owner where an owner is changed. `createEnrolment` invites, `createLink` renews a link.
 * The keys of a member stop with their access, because each read checks it; `previewImpact` lists
 * them beforehand.
 */

export interface MemberRequest {
  organizationId: string;
  personId: string;
  by: Authority;
}

const longestText = 200;

/**
 * Changes the name or title of a member; a field that is left out stays.
 *
 * @throws OrganizationError `nothing_to_change`, `field_invalid` and others.
 */
export async function changeMember(
  database: Database,
  input: MemberRequest & { name?: string; title?: string | null },
): Promise<void> {
  await changing(database, input, 'member.change', async (_tx, { membership }) => {
    if (input.name === undefined && input.title === undefined)
      throw new OrganizationError('nothing_to_change', 'Change the name or the title.');
    const name = input.name?.trim() ?? membership.name;
    const title = input.title === undefined ? membership.title : input.title?.trim() || null;
    if (name === '' || [name, title ?? ''].some((text) => text.length > longestText))
      throw new OrganizationError(
        'field_invalid',
        `Enter a name of 1 to ${longestText} characters and a title of at most ${longestText}.`,
      );
    return { ...membership.changeDetails(name, title) };
  });
}

/**
 * Suspends a member until they are reinstated: their keys stop, and their sessions no longer see
 * the organization.
 *
 * @throws OrganizationError `last_owner`, `wrong_status` and others.
 */
export async function suspendMember(database: Database, input: MemberRequest): Promise<void> {
  await changing(database, input, 'member.suspend', async (tx, { membership, access }) => {
    const wasActive = membership.status === 'active';
    if (!membership.suspend()) throw wrongStatus('The member is already suspended.');
    await endAccess(tx, membership, access.isOwner && wasActive);
    return {};
  });
}

/**
 * Gives a suspended member their roles' permissions back, all of which the caller must hold. A
 * member who was suspended before accepting the invitation is `invited` again, without a link.
 *
 * @throws OrganizationError `not_held`, `wrong_status` and others.
 */
export async function reinstateMember(database: Database, input: MemberRequest): Promise<void> {
  await changing(database, input, 'member.reinstate', async (_tx, { membership, access, actor }) => {
    if (!membership.reinstate()) throw wrongStatus('Only a suspended member can be reinstated.');
    assertHasPermissions(actor, access.permissions);
    return {};
  });
}

/**
 * Removes a member with all their roles; members who remove themselves need no permission. The row
 * stays, because access and log refer to it.
 *
 * @throws OrganizationError `last_owner` and others.
 */
export async function removeMember(database: Database, input: MemberRequest): Promise<void> {
  await changing(database, input, 'member.remove', async (tx, { membership, access }) => {
    const { status } = membership;
    membership.leave();
    await endAccess(tx, membership, access.isOwner && status === 'active');
    const { organizationId, personId } = membership;
    await tx.nativeDelete(MembershipRole, { organizationId, personId });
    return { status };
  });
}

/**
 * Which member holds which role. Both changes require `org.members.manage`, as all about members
 * does (`org.roles.manage` is for what a role is). The caller must hold all that an assigned role
 * gives, and only an owner assigns or removes the role of owners.
 */
interface MemberRoleRequest extends MemberRequest {
  roleId: string;
}

/**
 * Assigns a role to a member. A role that they hold changes nothing and is not recorded.
 *
 * @throws OrganizationError `not_held`, `only_owners` and others.
 */
export async function assignRole(database: Database, input: MemberRoleRequest): Promise<void> {
  await database.change(async (tx) => {
    const { actor, role, assigned } = await startRoleChange(tx, input);
    assertHasPermissions(actor, role.permissions);
    if (assigned !== null) return;
    const { organizationId, personId, by } = input;
    await tx.upsert(MembershipRole, { organizationId, personId, roleId: role.id }, { onConflictAction: 'ignore' });
    const detail = { memberId: personId, roleId: role.id, key: role.key };
    await recordAuditEntry(tx, { organizationId, by, action: 'member.role_assign', detail });
  });
}

/**
 * Removes a role from a member. A role that they do not hold changes nothing and is not recorded.
 *
 * @throws OrganizationError `last_owner`, `only_owners` and others.
 */
export async function unassignRole(database: Database, input: MemberRoleRequest): Promise<void> {
  await database.change(async (tx) => {
    const { member, role, assigned } = await startRoleChange(tx, input);
    if (assigned === null) return;
    const { organizationId, personId, by } = input;
    if (role.isOwner && member.status === 'active') await assertOwnerRemains(tx, organizationId, personId);
    tx.remove(assigned);
    const detail = { memberId: personId, roleId: role.id, key: role.key };
    await recordAuditEntry(tx, { organizationId, by, action: 'member.role_unassign', detail });
  });
}

async function startRoleChange(
  tx: Transaction,
  { organizationId, personId, roleId, by }: MemberRoleRequest,
): Promise<{ actor: Actor; member: MemberAccess; role: Role; assigned: MembershipRole | null }> {
  await lockOrganization(tx, organizationId);
  const actor = await getActor(tx, organizationId, by, 'org.members.manage');
  const member = await getMember(tx, organizationId, personId);
  const role = await getRole(tx, organizationId, roleId);
  assertMayChange(actor, member);
  assertMayChange(actor, role);
  const assigned = await tx.findOne(MembershipRole, { organizationId, personId, roleId: role.id });
  return { actor, member, role, assigned };
}

/** A member that is being changed: the locked row, what their roles give, and the caller. */
interface ChangedMember {
  membership: Membership;
  access: MemberAccess;
  actor: Actor;
}

/** Runs one change of a member. `change` returns what the audit entry holds beside the member. */
async function changing(
  database: Database,
  { organizationId, personId, by }: MemberRequest,
  action: string,
  change: (tx: Transaction, member: ChangedMember) => Promise<Record<string, unknown>>,
): Promise<void> {
  await database.change(async (tx) => {
    await lockOrganization(tx, organizationId);
    const isLeaving = action === 'member.remove' && by !== 'orgctl' && by.personId === personId;
    const actor = isLeaving ? leaver(personId) : await getActor(tx, organizationId, by, 'org.members.manage');
    const access = await getMember(tx, organizationId, personId);
    if (!isLeaving) assertMayChange(actor, access);
    const membership = await tx.findOneOrFail(Membership, { organizationId, personId }, writeLock);
    const detail = await change(tx, { membership, access, actor });
    await tx.flush();
    await recordAuditEntry(tx, { organizationId, by, action, detail: { memberId: personId, ...detail } });
  });
}

const leaver = (personId: string): Actor => ({ personId, permissions: new Set(), isOwner: false });

/**
 * Writes the status of a member who loses access, and ends the sessions of a person with no
 * organization left.
 *
 * @throws OrganizationError `last_owner`
 */
async function endAccess(tx: Transaction, membership: Membership, isActiveOwner: boolean): Promise<void> {
  const { organizationId, personId } = membership;
  if (isActiveOwner) await assertOwnerRemains(tx, organizationId, personId);
  await tx.flush(); // the sessions are checked by what is written
  await endSessionsWithoutAccess(tx, personId);
}

const wrongStatus = (message: string) => new OrganizationError('wrong_status', message);
