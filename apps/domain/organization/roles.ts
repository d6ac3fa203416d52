import { randomUUIDv7 } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import { assertHolds, getActor, lockOrganization } from '../access/actor.ts';
import { type Authority, askerOf } from '../access/authority.ts';
import { OrganizationRefused } from '../access/organization-refused.ts';
import { recordActivity } from '../activity/record.ts';
import { permissions as allPermissions, type Permission, systemRoleKeys } from '../contract/scopes.ts';
import { arrayOf, runStatement, sql } from '../db/statement.ts';

/**
 * An organization's own roles: sets of permissions under a name. All of it asks for
 * `org.roles.manage`; system roles are the same everywhere and are not changed.
 */

/** Own roles of an organization at most; each is a line in lists that have no pages. */
export const rolesPerOrganization = 100;

const longestText = 200;

/** A role as a change of it sees it. `organizationId` null: a system role. */
export interface AssignableRole {
  id: string;
  organizationId: string | null;
  key: string;
  name: string;
  permissions: Permission[];
}

/**
 * Makes an own role. `key` names it in the API; made of the name when left out. Returns its id.
 * @throws OrganizationRefused
 */
export async function createRole(
  em: EntityManager,
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
  return em.fork().transactional(async (tx) => {
    await lockOrganization(tx, organizationId);
    const actor = await getActor(tx, organizationId, by, 'org.roles.manage');
    const fields = { name: readText(input.name, 1), description: readText(input.description ?? '', 0) };
    const permissions = readPermissions(input.permissions);
    assertHolds(actor, permissions);
    const key = readKey(input.key ?? keyOf(fields.name));
    await assertFree(tx, organizationId, key);
    const id = randomUUIDv7();
    await runStatement(
      tx,
      sql`
      insert into role (id, organization_id, key, name, description, permissions)
      values (${id}, ${organizationId}, ${key}, ${fields.name}, ${fields.description}, ${arrayOf(permissions)}::text[])`,
    );
    const detail = { roleId: id, key, permissions };
    await recordActivity(tx, { organizationId, ...askerOf(by), action: 'role.create', detail });
    return { id, key };
  });
}

/**
 * Changes an own role; what is left out stays, the key always. Whoever holds it has the new
 * permissions from their next request on. @throws OrganizationRefused `not_held` for a permission
 * added that the one who asks lacks, and others
 */
export async function changeRole(
  em: EntityManager,
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
  await em.fork().transactional(async (tx) => {
    await lockOrganization(tx, organizationId);
    const actor = await getActor(tx, organizationId, by, 'org.roles.manage');
    const role = await getOwnRole(tx, organizationId, roleId);
    const changed = (['name', 'description', 'permissions'] as const).filter((field) => input[field] !== undefined);
    if (changed.length === 0)
      throw new OrganizationRefused('nothing_to_change', 'Say what to change: name, description or permissions.');
    const permissions = input.permissions === undefined ? role.permissions : readPermissions(input.permissions);
    const added = permissions.filter((permission) => !role.permissions.includes(permission));
    const removed = role.permissions.filter((permission) => !permissions.includes(permission));
    assertHolds(actor, added);
    const name = input.name === undefined ? null : readText(input.name, 1);
    const description = input.description === undefined ? null : readText(input.description, 0);
    await runStatement(
      tx,
      sql`
      update role set name = coalesce(${name}, name), description = coalesce(${description}, description), permissions = ${arrayOf(permissions)}::text[]
      where organization_id = ${organizationId} and id = ${roleId}`,
    );
    const detail = { roleId, key: role.key, changed, added, removed };
    await recordActivity(tx, { organizationId, ...askerOf(by), action: 'role.change', detail });
  });
}

/**
 * Deletes an own role that no member holds any more. One who left may still be written down with
 * it, as an import brings them; that ends with the role. @throws OrganizationRefused `role_in_use`
 * and others
 */
export async function deleteRole(
  em: EntityManager,
  { organizationId, roleId, by }: { organizationId: string; roleId: string; by: Authority },
): Promise<void> {
  await em.fork().transactional(async (tx) => {
    await lockOrganization(tx, organizationId);
    await getActor(tx, organizationId, by, 'org.roles.manage');
    const role = await getOwnRole(tx, organizationId, roleId);
    await runStatement(
      tx,
      sql`
      delete from membership_role mr using membership m
      where mr.organization_id = ${organizationId} and mr.role_id = ${roleId}
        and m.organization_id = mr.organization_id and m.person_id = mr.person_id and m.status = 'left'`,
    );
    const rows = await runStatement<{ holders: number }>(
      tx,
      sql`
      select count(*)::int as holders from membership_role where organization_id = ${organizationId} and role_id = ${roleId}`,
    );
    const holders = rows[0]?.holders ?? 0;
    if (holders > 0)
      throw new OrganizationRefused(
        'role_in_use',
        `${holders === 1 ? 'One member holds' : `${holders} members hold`} this role. Take it from them first.`,
      );
    await runStatement(tx, sql`delete from role where organization_id = ${organizationId} and id = ${roleId}`);
    const detail = { roleId, key: role.key };
    await recordActivity(tx, { organizationId, ...askerOf(by), action: 'role.delete', detail });
  });
}

/**
 * A role that the organization has: its own, or a system role. @throws OrganizationRefused
 * `no_such_role`
 */
export async function getRole(tx: EntityManager, organizationId: string, roleId: string): Promise<AssignableRole> {
  const [role] = await runStatement<AssignableRole>(
    tx,
    sql`
    select id, organization_id as "organizationId", key, name, permissions from role
    where id = ${roleId} and coalesce(organization_id, ${organizationId}) = ${organizationId}`,
  );
  if (role === undefined) throw new OrganizationRefused('no_such_role', 'The organization has no such role.');
  return role;
}

async function getOwnRole(tx: EntityManager, organizationId: string, roleId: string): Promise<AssignableRole> {
  const role = await getRole(tx, organizationId, roleId);
  if (role.organizationId === null)
    throw new OrganizationRefused(
      'system_role',
      'A system role is the same in every organization; make one of your own.',
    );
  return role;
}

async function assertFree(tx: EntityManager, organizationId: string, key: string): Promise<void> {
  const rows = await runStatement<{ own: number; isTaken: boolean }>(
    tx,
    sql`
    select count(*)::int as own, coalesce(bool_or(key = ${key}), false) as "isTaken" from role where organization_id = ${organizationId}`,
  );
  const { own = 0, isTaken = false } = rows[0] ?? {};
  if (isTaken || (systemRoleKeys as readonly string[]).includes(key))
    throw new OrganizationRefused('role_key_taken', `There is a role ${key} already; give this one another name.`);
  if (own >= rolesPerOrganization)
    throw new OrganizationRefused(
      'too_many_roles',
      `The organization has ${rolesPerOrganization} roles of its own, the most there can be. Delete one first.`,
    );
}

function readText(text: string, shortest: number): string {
  const trimmed = text.trim();
  if (trimmed.length >= shortest && trimmed.length <= longestText) return trimmed;
  throw new OrganizationRefused(
    'field_refused',
    `A role's name has 1 to ${longestText} characters, its description at most as many.`,
  );
}

function readKey(key: string): string {
  if (/^[a-z0-9][a-z0-9_-]{0,99}$/.test(key)) return key;
  throw new OrganizationRefused(
    'field_refused',
    'A role’s key has 1 to 100 characters: a–z, 0–9, - and _. Give one, if the name has none of them.',
  );
}

/** "Case manager" gives `case-manager`. */
const keyOf = (name: string) =>
  name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 100);

/** In the order of the contract, each once. */
function readPermissions(given: readonly string[]): Permission[] {
  const unknown = given.filter((permission) => !(allPermissions as readonly string[]).includes(permission));
  if (unknown.length > 0)
    throw new OrganizationRefused('unknown_permission', `There is no permission ${unknown.join(', ')}.`);
  return allPermissions.filter((permission) => given.includes(permission));
}
