import type { Permission } from '#domain/contract/scopes.ts';
import type { RoleRow } from '#domain/members/list-roles.ts';
import { type Child, type Html, html } from '#runtime/pages/html.ts';
import { displayName } from '../../components/text.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { describeRole } from './describe-role.ts';

/**
 * Returns whether the visitor is an owner. Only owners can change owners, although administrators
 * have the same permissions. Custom roles can't use the identifier `owner`.
 */
export const isOwner = (visit: MemberVisit): boolean => visit.organization.roleKeys.includes('owner');

/** Returns why the visitor can't assign a role; null when they can. The domain enforces it. */
export function whyNotAssignable(
  visit: MemberVisit,
  role: Pick<RoleRow, 'key' | 'isSystem' | 'permissions'>,
): string | null {
  if (role.isSystem && role.key === 'owner' && !isOwner(visit)) return 'Only an owner can assign this role.';
  const missing = role.permissions.filter((permission: Permission) => !visit.may(permission));
  return missing.length === 0 ? null : `You don’t have ${missing.join(', ')}.`;
}

/** Returns roles as choices. Those that the visitor can't assign are disabled, with the reason. */
export function roleChoices(
  visit: MemberVisit,
  roles: readonly RoleRow[],
  valueFor: (role: RoleRow) => string,
): { value: string; label: Child; hint: Child; disabled: boolean }[] {
  return roles.map((role) => {
    const why = whyNotAssignable(visit, role);
    return {
      value: valueFor(role),
      label: displayName(role.name),
      hint: renderHint(role, why),
      disabled: why !== null,
    };
  });
}

function renderHint(role: RoleRow, why: string | null): Html {
  const hasDescription = role.isSystem || role.description !== '';
  const text = hasDescription ? describeRole(role) : role.permissions.join(', ') || 'No permissions.';
  return html`${text}${why === null ? '' : ` ${why}`}`;
}
