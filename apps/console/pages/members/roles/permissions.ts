import { isScope, type Permission, permissions, type scopes } from '#domain/contract/scopes.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { describeScope } from '../../../components/reads.ts';
import type { MemberVisit } from '../../../web/visit.ts';

const managingDescriptions: Record<Exclude<Permission, (typeof scopes)[number]>, string> = {
  'org.keys.manage': 'Create, rotate and revoke API keys',
  'org.webhooks.manage': 'Add and edit webhooks, view and redeliver events',
  'org.members.manage': 'Invite, edit, suspend and remove members, assign and remove roles (requires org.members.read)',
  'org.roles.manage': 'Create, edit and delete custom roles (requires org.roles.read)',
  'org.seats.manage': 'Assign and end seats, end and move clients’ access',
  'org.activity.read': 'View and download the audit log',
};

/** Describes a permission. A scope allows reads in the console and through API keys. */
function describePermission(permission: Permission): string {
  return isScope(permission) ? `Read ${describeScope(permission)}` : managingDescriptions[permission];
}

/** Lists a role's permissions with their descriptions. */
export function permissionList(permissions: readonly Permission[]): Html {
  if (permissions.length === 0) return html`<p>No permissions.</p>`;
  return html`<dl class="details">${permissions.map(
    (permission) => html`<div><dt><code>${permission}</code></dt><dd>${describePermission(permission)}.</dd></div>`,
  )}</dl>`;
}

/**
 * Returns every permission as a choice. A visitor can't add permissions that they don't have, but
 * can remove those that the role already has (`present`).
 */
export function permissionChoices(visit: MemberVisit, present: readonly Permission[]) {
  return permissions.map((permission) => {
    const mayGrant = visit.may(permission);
    const isPresent = present.includes(permission);
    const why = mayGrant
      ? ''
      : isPresent
        ? ' You don’t have this permission. If you remove it, you can’t add it again.'
        : ' You don’t have this permission.';
    return {
      value: permission,
      label: html`<code>${permission}</code>`,
      disabled: !mayGrant && !isPresent,
      hint: `${describePermission(permission)}.${why}`,
    };
  });
}
