import { randomUUIDv7 } from 'node:crypto';
import { sql } from 'kysely';
import { assertHasPermissions, getActor } from '../access/actor.ts';
import type { Authority } from '../access/authority.ts';
import { OrganizationError } from '../access/errors.ts';
import { MembershipRole, Role } from '../access/membership.entity.ts';
import { recordAuditEntry } from '../audit-log/record.ts';
import { permissions as allPermissions, type Permission, systemRoleKeys } from '../contract/scopes.ts';
import type { Database, Transaction } from '../db/database.ts';
import { lockOrganization } from '../db/locks.ts';

/** An organization's own roles. Each change requires `org.roles.manage`. */

/** The maximum number of custom roles of an organization: lists of them have no pages. */
export const rolesPerOrganization = 100;

const longestText = 200;

/**
 * Creates an own role and returns its id and key. `key` names it in the API; by default it is
 * derived from the name.
 *
 * @throws OrganizationError `not_held`, `role_key_taken`, `too_many_roles` and others.
 */
export async function createRole(
  database: Database,
  input: {
    organizationId: string;
    by: Authority;
    name: string;
    key?: string;
    description?: string;
    permissions: readonly string[];
  },
): Promise<{ id: string; key: string }> {
  const { organizationId, by } = input;
  return database.change(async (tx) => {
    await lockOrganization(tx, organizationId);
    const actor = await getActor(tx, organizationId, by, 'org.roles.manage');
    const fields = { name: readText(input.name, 1), description: readText(input.description ?? '', 0) };
    const permissions = readPermissions(input.permissions);
    assertHasPermissions(actor, permissions);
    const key = readKey(input.key ?? deriveRoleKey(fields.name));
    await assertFree(tx, organizationId, key);
    const id = randomUUIDv7();
    tx.create(Role, { id, organizationId, key, ...fields, permissions, position: null });
    await tx.flush();
    await recordAuditEntry(tx, { organizationId, by, action: 'role.create', detail: { roleId: id, key, permissions } });
    return { id, key };
  });
}

/**
 * Changes an own role; a field that is left out stays, and so does the key. Its holders have the
 * new permissions from their next request on.
 *
 * @throws OrganizationError `not_held` for an added permission that the caller lacks, and others.
 */
export async function changeRole(
  database: Database,
  input: {
    organizationId: string;
    roleId: string;
    by: Authority;
    name?: string;
    description?: string;
    permissions?: readonly string[];
  },
): Promise<void> {
  const { organizationId, roleId, by } = input;
  await database.change(async (tx) => {
    await lockOrganization(tx, organizationId);
    const actor = await getActor(tx, organizationId, by, 'org.roles.manage');
    const role = await getOwnRole(tx, organizationId, roleId);
    const changed = (['name', 'description', 'permissions'] as const).filter((field) => input[field] !== undefined);
    if (changed.length === 0)
      throw new OrganizationError('nothing_to_change', 'Change the name, the description or the permissions.');
    const permissions = input.permissions === undefined ? role.permissions : readPermissions(input.permissions);
    const { added, removed } = role.permit(permissions);
    assertHasPermissions(actor, added);
    if (input.name !== undefined) role.name = readText(input.name, 1);
    if (input.description !== undefined) role.description = readText(input.description, 0);
    await tx.flush();
    const detail = { roleId, key: role.key, changed, added, removed };
    await recordAuditEntry(tx, { organizationId, by, action: 'role.change', detail });
  });
}

/**
 * Deletes an own role that no member holds. An import may leave it with members who have left; they
 * lose it.
 *
 * @throws OrganizationError `role_in_use` and others.
 */
export async function deleteRole(
  database: Database,
  { organizationId, roleId, by }: { organizationId: string; roleId: string; by: Authority },
): Promise<void> {
  await database.change(async (tx) => {
    await lockOrganization(tx, organizationId);
    await getActor(tx, organizationId, by, 'org.roles.manage');
    const role = await getOwnRole(tx, organizationId, roleId);
    await tx.query(sql`
      delete from membership_role mr using membership m
      where mr.organization_id = ${organizationId} and mr.role_id = ${roleId}
        and m.organization_id = mr.organization_id and m.person_id = mr.person_id and m.status = 'left'`);
    const holders = await tx.count(MembershipRole, { organizationId, roleId });
    if (holders > 0)
      throw new OrganizationError(
        'role_in_use',
        `${holders === 1 ? 'One member has' : `${holders} members have`} this role. Remove it from them first.`,
      );
    tx.remove(role);
    await tx.flush();
    await recordAuditEntry(tx, { organizationId, by, action: 'role.delete', detail: { roleId, key: role.key } });
  });
}

/**
 * Returns a role of the organization: its own, or a system role.
 *
 * @throws OrganizationError `no_such_role`
 */
export async function getRole(tx: Transaction, organizationId: string, roleId: string): Promise<Role> {
  const role = await tx.findOne(Role, { id: roleId, $or: [{ organizationId }, { organizationId: null }] });
  if (role === null) throw new OrganizationError('no_such_role', 'The organization has no such role.');
  return role;
}

async function getOwnRole(tx: Transaction, organizationId: string, roleId: string): Promise<Role> {
  const role = await getRole(tx, organizationId, roleId);
  if (role.isSystem)
    throw new OrganizationError('system_role', 'You can’t change a system role. Create a custom role instead.');
  return role;
}

async function assertFree(tx: Transaction, organizationId: string, key: string): Promise<void> {
  const own = await tx.find(Role, { organizationId }, { fields: ['key'] });
  if (own.some((role) => role.key === key) || (systemRoleKeys as readonly string[]).includes(key))
    throw new OrganizationError('role_key_taken', `The role ${key} already exists. Enter another name.`);
  if (own.length >= rolesPerOrganization)
    throw new OrganizationError(
      'too_many_roles',
      `The organization has ${rolesPerOrganization} custom roles, which is the maximum. Delete one first.`,
    );
}

function readText(text: string, shortest: number): string {
  const trimmed = text.trim();
  if (trimmed.length >= shortest && trimmed.length <= longestText) return trimmed;
  throw new OrganizationError(
    'field_invalid',
    `Enter a name of 1 to ${longestText} characters and a description of at most ${longestText}.`,
  );
}

function readKey(key: string): string {
  if (/^[a-z0-9][a-z0-9_-]{0,99}$/.test(key)) return key;
  throw new OrganizationError('field_invalid', 'Enter an identifier of 1 to 100 characters: a–z, 0–9, - and _.');
}

/** Derives a key from a name: "Case manager" gives `case-manager`. */
const deriveRoleKey = (name: string) =>
  name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 100);

/** Returns known permissions in the order of the contract, each once. */
function readPermissions(given: readonly string[]): Permission[] {
  const unknown = given.filter((permission) => !(allPermissions as readonly string[]).includes(permission));
  if (unknown.length > 0)
    throw new OrganizationError('unknown_permission', `The permission ${unknown.join(', ')} does not exist.`);
  return allPermissions.filter((permission) => given.includes(permission));
}
