import { sql } from 'kysely';
import type { Permission } from '../contract/scopes.ts';
import type { Queryable } from '../db/database.ts';

/**
 * The caller of a change: a person, who needs the permission for it, with their IP address where it
 * is known; or an operator at the command line, who has direct access to the database and needs
 * none.
 */
export type Authority = { personId: string; address?: string | null } | 'orgctl';

/**
 * The Kubernetes operator, on behalf of an object of the cluster. `objectUid` identifies the
 * object; `objectName` is its kind, namespace and name, for people:
 * `WebhookSubscription us/orders`.
 */
export interface ClusterObject {
  objectUid: string;
  objectName: string;
}

/** Returns the person who asks; null for an operator and for an object of a cluster. */
export const findPersonId = (by: Authority | ClusterObject): string | null =>
  by !== 'orgctl' && 'personId' in by ? by.personId : null;

/** Selects the permissions `p` that the roles of a member `m` grant, each once. */
export const memberPermissions = sql`
  select distinct p from membership_role mr join role r on r.id = mr.role_id, unnest(r.permissions) as p
  where mr.organization_id = m.organization_id and mr.person_id = m.person_id`;

/**
 * Returns what a person may do in an organization now: every permission of their roles, or null
 * when they are not an active member. One statement, and so one snapshot.
 */
export async function findPermissions(
  db: Queryable,
  organizationId: string,
  personId: string,
): Promise<Set<Permission> | null> {
  const [member] = await db.query(sql<{ permissions: Permission[] }>`
    select array(${memberPermissions}) as permissions from membership m
    where m.organization_id = ${organizationId} and m.person_id = ${personId} and m.status = 'active'`);
  return member === undefined ? null : new Set(member.permissions);
}
