import type { Permission } from '#domain/contract/scopes.ts';
import type { RoleRow } from '#domain/organization/list-roles.ts';
import { displayName } from '../../components/display-name.ts';
import { type Child, type Html, html } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { roleMeaning } from '../roles/meaning.ts';

/**
 * An administrator holds all that an owner holds, and may yet not make or change owners. Own roles
 * may not take the key.
 */
export const isOwner = (visit: MemberVisit): boolean => visit.organization.roleKeys.includes('owner');

/** Why the visitor cannot give a role, as the domain will say; null when they can. */
export function whyNotGiven(
  visit: MemberVisit,
  role: Pick<RoleRow, 'key' | 'isSystem' | 'permissions'>,
): string | null {
  if (role.isSystem && role.key === 'owner' && !isOwner(visit)) return 'Only an owner can make an owner.';
  const missing = role.permissions.filter((permission: Permission) => !visit.may(permission));
  return missing.length === 0 ? null : `Not yours to give: you do not hold ${missing.join(', ')}.`;
}

/** Roles to choose from; those that are not the visitor's to give cannot be chosen, and say why. */
export function roleChoices(
  visit: MemberVisit,
  roles: readonly RoleRow[],
  valueFor: (role: RoleRow) => string,
): { value: string; label: Child; hint: Child; disabled: boolean }[] {
  return roles.map((role) => {
    const why = whyNotGiven(visit, role);
    return { value: valueFor(role), label: displayName(role.name), hint: hintOf(role, why), disabled: why !== null };
  });
}

function hintOf(role: RoleRow, why: string | null): Html {
  const isTold = role.isSystem || role.description !== '';
  return html`${isTold ? roleMeaning(role) : role.permissions.join(', ') || 'No permission at all.'}${why === null ? '' : ` ${why}`}`;
}
