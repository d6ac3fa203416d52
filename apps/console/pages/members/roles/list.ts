import { listRoles, type RoleRow } from '#domain/members/list-roles.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { emptyState } from '../../../components/empty-state.ts';
import { linkButton } from '../../../components/link.ts';
import { type Column, table } from '../../../components/table.ts';
import { displayName } from '../../../components/text.ts';
import { type Page, page } from '../../../web/response.ts';
import { member } from '../../../web/route.ts';
import type { MemberVisit } from '../../../web/visit.ts';
import { describeRole } from '../describe-role.ts';
import { memberTabs } from '../member-tabs.ts';

/** Lists system roles and custom roles. */
export const listRoutes = [
  member.view({
    name: 'listRoles',
    path: '/members/roles',
    permission: 'org.roles.read',
    async show(visit) {
      const roles = await listRoles(visit.console.database, visit.organizationId);
      const system = roles.filter(({ isSystem }) => isSystem);
      const custom = roles.filter(({ isSystem }) => !isSystem);
      const createRole = visit.may('org.roles.manage')
        ? linkButton(visit.at('/members/roles/new'), 'Create role')
        : nothing;
      return page({
        title: 'Roles',
        actions: custom.length === 0 ? null : createRole,
        body: html`
          ${memberTabs(visit, 'roles')}
          <p>A role is a set of permissions. Members have the permissions of all their roles. You can assign only
            permissions that you have.</p>
          <section aria-labelledby="system"><h2 id="system">System roles</h2>
            ${table({ caption: 'System roles', columns: columns(visit), rows: system })}</section>
          <section aria-labelledby="own"><h2 id="own">Custom roles</h2>
            ${
              custom.length === 0
                ? emptyState({
                    icon: 'members',
                    title: 'No custom roles yet',
                    body: 'Create a role with exactly the permissions that your members need.',
                    action: createRole,
                  })
                : table({ caption: 'Custom roles', columns: columns(visit), rows: custom })
            }</section>`,
      });
    },
  }),
];

const columns = (visit: MemberVisit): Column<RoleRow>[] => [
  {
    heading: 'Role',
    main: true,
    cell: (role) => html`<a href="${visit.at(`/members/roles/${role.id}`)}">${displayName(role.name)}</a>
      <div class="quiet regular">${describeRole(role)}</div>`,
  },
  { heading: 'Permissions', numeric: true, whenNarrow: 'hidden', cell: ({ permissions }) => permissions.length },
  { heading: 'Members', numeric: true, cell: (role) => holdersCell(visit, role) },
];

/** Returns the breadcrumbs of a page below the list of roles. */
export const rolesBreadcrumbs = (visit: MemberVisit): Page['breadcrumbs'] => [
  ['Roles', visit.at('/members/roles')],
  ['Members', visit.at('/members')],
];

/** Returns how many members have a role, linked to their list. */
export function holdersCell(visit: MemberVisit, { id, holders }: RoleRow): Html {
  const text = holders.toLocaleString('en');
  return holders > 0 && visit.may('org.members.read')
    ? html`<a href="${visit.at(`/members?status=all&role=${id}`)}">${text}</a>`
    : html`${text}`;
}
