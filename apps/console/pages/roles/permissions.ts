import { reads } from '#domain/activity/sentences.ts';
import { operationsOfScope } from '#domain/contract/operations.ts';
import { isScope, type Permission, permissions, type scopes } from '#domain/contract/scopes.ts';
import { type Html, html } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';

const managing: Record<Exclude<Permission, (typeof scopes)[number]>, string> = {
  'org.keys.manage': 'Make, rotate and revoke API keys',
  'org.webhooks.manage': 'Make and change webhooks, see deliveries, send events again',
  'org.members.manage': 'Invite, change, suspend and remove members, give and take roles; goes with org.members.read',
  'org.roles.manage': 'Make, change and delete own roles; goes with org.roles.read',
  'org.seats.manage': 'Give and end seats, end and move clients’ access',
  'org.activity.read': 'See and download the activity log',
};

/**
 * What a permission lets its holder do: a scope reads, here and with keys they make; the others
 * change things here.
 */
export function meaningOf(permission: Permission): string {
  if (!isScope(permission)) return managing[permission];
  return `Read ${operationsOfScope[permission].map((operation) => reads[operation] ?? operation).join(' and ')}`;
}

/** A role's permissions with what each means. */
export function permissionList(held: readonly Permission[]): Html {
  if (held.length === 0) return html`<p>None: who holds this role alone may do nothing.</p>`;
  return html`<dl class="details">${held.map(
    (permission) => html`<div><dt><code>${permission}</code></dt><dd>${meaningOf(permission)}.</dd></div>`,
  )}</dl>`;
}

/**
 * Every permission, to tick. What the visitor does not hold cannot be added to a role, and says so;
 * what the role has already (`present`) can be taken from it by anybody who manages roles, so it
 * can be cleared, and says that there is no way back.
 */
export function permissionChoices(visit: MemberVisit, present: readonly Permission[]) {
  return permissions.map((permission) => {
    const isHeld = visit.may(permission);
    const isPresent = present.includes(permission);
    const why = isHeld
      ? ''
      : isPresent
        ? ' You do not hold it: once taken from the role, you cannot put it back.'
        : ' Not yours to give: you do not hold it.';
    return {
      value: permission,
      label: html`<code>${permission}</code>`,
      disabled: !isHeld && !isPresent,
      hint: `${meaningOf(permission)}.${why}`,
    };
  });
}
