import { sql } from 'kysely';
import { OrganizationError } from '../access/errors.ts';
import type { Permission } from '../contract/scopes.ts';
import type { Queryable } from '../db/database.ts';

/** A role. `holders` counts members who have not left; with one, it cannot be deleted. */
export interface RoleRow {
  id: string;
  key: string;
  name: string;
  description: string;
  permissions: Permission[];
  isSystem: boolean;
  holders: number;
}

/** The most roles of a list. The console creates 100; an import may have brought more. */
const rolesListed = 500;

/** Lists the system roles in their fixed order, then the organization's own by name. */
export async function listRoles(db: Queryable, organizationId: string): Promise<RoleRow[]> {
  return db.query(sql<RoleRow>`
    select ${columns}, coalesce(h.holders, 0) as holders
    from role r
    left join (select mr.role_id, count(*)::int as holders ${assignments(organizationId)} group by mr.role_id) h
      on h.role_id = r.id
    where r.organization_id = ${organizationId} or r.organization_id is null
    order by r.position nulls last, r.name collate "und-x-icu", r.id limit ${sql.lit(rolesListed)}`);
}

/**
 * Returns one role of the organization.
 *
 * @throws OrganizationError `no_such_role`
 */
export async function getRoleDetails(db: Queryable, organizationId: string, roleId: string): Promise<RoleRow> {
  const [role] = await db.query(sql<RoleRow>`
    select ${columns}, (select count(*)::int ${assignments(organizationId)} and mr.role_id = r.id) as holders
    from role r
    where r.id = ${roleId} and (r.organization_id = ${organizationId} or r.organization_id is null)`);
  if (role === undefined) throw new OrganizationError('no_such_role', 'The organization has no such role.');
  return role;
}

const columns = sql`r.id, r.key, r.name, r.description, r.permissions, r.organization_id is null as "isSystem"`;

/** Roles of members who have not left: an import may bring a former member with roles. */
const assignments = (organizationId: string) => sql`
  from membership_role mr
  join membership m on m.organization_id = mr.organization_id and m.person_id = mr.person_id and m.status <> 'left'
  where mr.organization_id = ${organizationId}`;
