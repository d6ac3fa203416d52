import { sql } from 'kysely';
import { isActiveGrant, isScheduledGrant } from '../clients/grant-conditions.ts';
import { operationsOfScope } from '../contract/operations.ts';
import type { Permission, Scope } from '../contract/scopes.ts';
import type { Queryable } from '../db/database.ts';

/**
 * Previews of a change: a key can do only what its creator may do now, so a change of a member or a
 * role can stop keys that partners use. These functions list them beforehand. They check no
 * permission; the caller decides who sees the result.
 */

/** A valid key of a member. `working` are the scopes that its creator still holds. */
export interface MemberKey {
  id: string;
  label: string;
  hint: string;
  creatorId: string;
  scopes: Scope[];
  working: Scope[];
}

/** A key with the `scopes` that it would lose, and the `operations` then rejected. */
export interface AffectedKey extends Omit<MemberKey, 'working'> {
  operations: string[];
  losesAllScopes: boolean;
}

/** What a change of a member affects. `openGrants`, active or not begun, continue. */
export interface Impact {
  keys: AffectedKey[];
  openGrants: number;
}

export type MemberChange = { kind: 'suspend' } | { kind: 'remove' } | { kind: 'unassign'; roleId: string };

interface Creator {
  personId: string;
  isActive: boolean;
  roles: { id: string; permissions: Permission[] }[];
  keys: Omit<MemberKey, 'creatorId' | 'working'>[];
}

/** Lists the valid keys that a member created, oldest first, with what each can read now. */
export async function listKeysOfCreator(
  db: Queryable,
  organizationId: string,
  personId: string,
  now: Date,
): Promise<MemberKey[]> {
  const creators = await listCreators(db, organizationId, { personId, roleId: null }, now);
  return creators.flatMap((creator) => {
    const permissions = collectPermissions(creator);
    const listWorkingScopes = (key: { scopes: Scope[] }) => key.scopes.filter((scope) => permissions.has(scope));
    return creator.keys.map((key) => ({ ...key, creatorId: personId, working: listWorkingScopes(key) }));
  });
}

/** Returns which keys lose scopes when a member is suspended, removed or loses a role. */
export async function previewImpact(
  db: Queryable,
  organizationId: string,
  personId: string,
  change: MemberChange,
  now: Date,
): Promise<Impact> {
  const creators = await listCreators(db, organizationId, { personId, roleId: null }, now);
  const after = (creator: Creator): Creator =>
    change.kind === 'unassign'
      ? { ...creator, roles: creator.roles.filter(({ id }) => id !== change.roleId.toLowerCase()) }
      : { ...creator, isActive: false };
  const openGrants = change.kind === 'unassign' ? 0 : await countOpenGrants(db, organizationId, personId);
  return { keys: findAffectedKeys(creators, after), openGrants };
}

/** Returns which keys lose scopes when a role keeps only these permissions (none: deleted). */
export async function previewRoleImpact(
  db: Queryable,
  organizationId: string,
  roleId: string,
  permissionsAfter: readonly string[],
  now: Date,
): Promise<AffectedKey[]> {
  const creators = await listCreators(db, organizationId, { personId: null, roleId }, now);
  const changed = (role: Creator['roles'][number]) => ({
    ...role,
    permissions: role.permissions.filter((permission) => permissionsAfter.includes(permission)),
  });
  return findAffectedKeys(creators, (creator) => ({
    ...creator,
    roles: creator.roles.map((role) => (role.id === roleId.toLowerCase() ? changed(role) : role)),
  }));
}

function findAffectedKeys(creators: Creator[], after: (creator: Creator) => Creator): AffectedKey[] {
  return creators.flatMap((creator) => {
    const before = collectPermissions(creator);
    const left = collectPermissions(after(creator));
    return creator.keys
      .map((key) => {
        const lost = key.scopes.filter((scope) => before.has(scope) && !left.has(scope));
        return {
          ...key,
          creatorId: creator.personId,
          scopes: lost,
          operations: lost.flatMap((scope) => operationsOfScope[scope]),
          losesAllScopes: !key.scopes.some((scope) => left.has(scope)),
        };
      })
      .filter(({ scopes }) => scopes.length > 0);
  });
}

const collectPermissions = ({ isActive, roles }: Creator): ReadonlySet<Permission> =>
  new Set(isActive ? roles.flatMap(({ permissions }) => permissions) : []);

/** Lists members with valid keys by id: the one given, or all who hold the role given. */
async function listCreators(
  db: Queryable,
  organizationId: string,
  { personId, roleId }: { personId: string | null; roleId: string | null },
  now: Date,
): Promise<Creator[]> {
  return db.query(sql<Creator>`
    select m.person_id as "personId", m.status = 'active' as "isActive",
      (select coalesce(json_agg(json_build_object('id', r.id, 'permissions', r.permissions)), '[]')
        from membership_role mr join role r on r.id = mr.role_id
        where mr.organization_id = m.organization_id and mr.person_id = m.person_id) as roles,
      k.keys
    from membership m
    cross join lateral (
      select json_agg(json_build_object('id', k.id, 'label', k.label, 'hint', k.hint, 'scopes', k.scopes)
        order by k.created_at, k.id) as keys
      from api_key k
      where k.organization_id = m.organization_id and k.creator_id = m.person_id and k.revoked_at is null
        and k.creator_left_at is null
        and (k.expires_at is null or k.expires_at > ${now.toISOString()}::timestamptz)
    ) k
    where m.organization_id = ${organizationId} and k.keys is not null
      and (${personId}::text is null or m.person_id = ${personId})
      and (${roleId}::uuid is null or exists (
        select from membership_role mr where mr.organization_id = m.organization_id and mr.person_id = m.person_id
          and mr.role_id = ${roleId}::uuid))
    order by m.person_id`);
}

async function countOpenGrants(db: Queryable, organizationId: string, personId: string): Promise<number> {
  const rows = await db.query(sql<{ count: number }>`
    select count(*)::int as count from client_grant g
    where g.organization_id = ${organizationId} and g.professional_id = ${personId}
      and ((${isActiveGrant}) or ${isScheduledGrant})`);
  return rows[0]?.count ?? 0;
}
