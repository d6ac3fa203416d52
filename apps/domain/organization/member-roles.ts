import type { EntityManager } from '@mikro-orm/postgresql';
import {
  type Actor,
  assertHolds,
  assertMayChange,
  assertOwnerRemains,
  getActor,
  getMember,
  lockOrganization,
  type MemberAccess,
} from '../access/actor.ts';
import { recordActivity } from '../activity/record.ts';
import { MembershipRole, type Role } from '../db/entities/organization.ts';
import type { MemberRequest } from './members.ts';
import { getRole } from './roles.ts';

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
 * @throws OrganizationRefused `not_held`, `only_owners` and others.
 */
export async function assignRole(em: EntityManager, input: MemberRoleRequest): Promise<void> {
  await em.fork().transactional(async (tx) => {
    const { actor, role, held } = await begin(tx, input);
    assertHolds(actor, role.permissions);
    if (held !== null) return;
    const { organizationId, personId } = input;
    await tx.upsert(MembershipRole, { organizationId, personId, roleId: role.id }, { onConflictAction: 'ignore' });
    await record(tx, input, role, 'member.role_assign');
  });
}

/**
 * Removes a role from a member. A role that they do not hold changes nothing and is not recorded.
 *
 * @throws OrganizationRefused `last_owner`, `only_owners` and others.
 */
export async function unassignRole(em: EntityManager, input: MemberRoleRequest): Promise<void> {
  await em.fork().transactional(async (tx) => {
    const { member, role, held } = await begin(tx, input);
    if (held === null) return;
    if (role.isOwner && member.status === 'active') await assertOwnerRemains(tx, input.organizationId, input.personId);
    tx.remove(held);
    await record(tx, input, role, 'member.role_unassign');
  });
}

async function begin(
  tx: EntityManager,
  { organizationId, personId, roleId, by }: MemberRoleRequest,
): Promise<{ actor: Actor; member: MemberAccess; role: Role; held: MembershipRole | null }> {
  await lockOrganization(tx, organizationId);
  const actor = await getActor(tx, organizationId, by, 'org.members.manage');
  const member = await getMember(tx, organizationId, personId);
  const role = await getRole(tx, organizationId, roleId);
  assertMayChange(actor, member);
  assertMayChange(actor, role);
  const held = await tx.findOne(MembershipRole, { organizationId, personId, roleId: role.id });
  return { actor, member, role, held };
}

async function record(
  tx: EntityManager,
  { organizationId, personId, by }: MemberRoleRequest,
  { id: roleId, key }: Role,
  action: string,
): Promise<void> {
  await recordActivity(tx, { organizationId, by, action, detail: { memberId: personId, roleId, key } });
}
