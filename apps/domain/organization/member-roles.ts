import type { EntityManager } from '@mikro-orm/postgresql';
import {
  type Actor,
  assertHolds,
  assertMayTouch,
  assertOwnerRemains,
  getActor,
  getMember,
  lockOrganization,
  type MemberAccess,
} from '../access/actor.ts';
import { askerOf } from '../access/authority.ts';
import { recordActivity } from '../activity/record.ts';
import { runStatement, sql } from '../db/statement.ts';
import type { MemberRequest } from './members.ts';
import { type AssignableRole, getRole } from './roles.ts';

/**
 * Which member holds which role. It asks for `org.members.manage`, as all about members does
 * (`org.roles.manage` is for what a role is): who assigns must hold all that the role gives, and
 * only an owner makes or unmakes an owner.
 */
export interface MemberRoleRequest extends MemberRequest {
  roleId: string;
}

/**
 * Gives a member a role. One they hold already changes nothing and has no line. @throws
 * OrganizationRefused `not_held`, `only_owners` and others
 */
export async function assignRole(em: EntityManager, input: MemberRoleRequest): Promise<void> {
  await em.fork().transactional(async (tx) => {
    const { actor, role } = await begin(tx, input);
    assertHolds(actor, role.permissions);
    const rows = await runStatement(
      tx,
      sql`
      insert into membership_role (organization_id, person_id, role_id) values (${input.organizationId}, ${input.personId}, ${input.roleId})
      on conflict do nothing returning role_id`,
    );
    if (rows.length > 0) await record(tx, input, role, 'member.role_assign');
  });
}

/**
 * Takes a role from a member. One they do not hold changes nothing and has no line. @throws
 * OrganizationRefused `last_owner`, `only_owners` and others
 */
export async function unassignRole(em: EntityManager, input: MemberRoleRequest): Promise<void> {
  await em.fork().transactional(async (tx) => {
    const { member, role } = await begin(tx, input);
    const rows = await runStatement(
      tx,
      sql`
      delete from membership_role
      where organization_id = ${input.organizationId} and person_id = ${input.personId} and role_id = ${input.roleId} returning role_id`,
    );
    if (rows.length === 0) return;
    if (isOwnerRole(role) && member.status === 'active')
      await assertOwnerRemains(tx, input.organizationId, input.personId);
    await record(tx, input, role, 'member.role_unassign');
  });
}

/** Whether it is the system's role of owners. */
export const isOwnerRole = ({ organizationId, key }: AssignableRole) => organizationId === null && key === 'owner';

async function begin(
  tx: EntityManager,
  { organizationId, personId, roleId, by }: MemberRoleRequest,
): Promise<{ actor: Actor; member: MemberAccess; role: AssignableRole }> {
  await lockOrganization(tx, organizationId);
  const actor = await getActor(tx, organizationId, by, 'org.members.manage');
  const member = await getMember(tx, organizationId, personId);
  const role = await getRole(tx, organizationId, roleId);
  assertMayTouch(actor, member);
  assertMayTouch(actor, { isOwner: isOwnerRole(role) });
  return { actor, member, role };
}

async function record(
  tx: EntityManager,
  { organizationId, personId, roleId, by }: MemberRoleRequest,
  { key }: AssignableRole,
  action: string,
): Promise<void> {
  const detail = { memberId: personId, roleId, key };
  await recordActivity(tx, { organizationId, ...askerOf(by), action, detail });
}
