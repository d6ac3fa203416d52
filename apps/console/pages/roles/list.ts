import { listRoles, type RoleRow } from '#domain/organization/list-roles.ts';
import { displayName } from '../../components/display-name.ts';
import { emptyState } from '../../components/empty-state.ts';
import { linkButton } from '../../components/link.ts';
import { type Column, table } from '../../components/table.ts';
import { page } from '../../web/answer.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { roleMeaning } from './meaning.ts';

/** The roles: the system's, explained, and the organization's own. */
export const listRoutes = [
  member.view({
    name: 'listRoles',
    path: '/members/roles',
    permission: 'org.roles.read',
    async show(visit) {
      const roles = await listRoles(visit.console.em, visit.organization.organizationId);
      const own = roles.filter(({ isSystem }) => !isSystem);
      const makeRole = visit.may('org.roles.manage')
        ? linkButton(visit.at('/members/roles/new'), 'Make a role')
        : nothing;
      return page({
        title: 'Roles',
        breadcrumbs: [['Members', visit.at('/members')]],
        body: html`
          <p>A role is a set of permissions under a name. A member may do what all their roles together allow, and nobody can give what they do not hold.</p>
          <section aria-labelledby="system"><h2 id="system">In every organization</h2>
            ${table({ caption: 'System roles', columns: columns(visit), rows: roles.filter(({ isSystem }) => isSystem) })}</section>
          <section aria-labelledby="own"><h2 id="own">Your own</h2>
            ${
              own.length === 0
                ? emptyState({
                    title: 'No own role yet',
                    body: 'When a system role gives somebody too much or too little, make one that gives just what they need: “Intake”, say, that reads clients and gives seats.',
                    action: makeRole,
                  })
                : html`<p class="actions">${makeRole}</p>${table({ caption: 'Own roles', columns: columns(visit), rows: own })}`
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
      <div class="quiet regular">${roleMeaning(role)}</div>`,
  },
  { heading: 'Permissions', numeric: true, cell: ({ permissions }) => permissions.length },
  { heading: 'Held by', numeric: true, cell: (role) => holdersCell(visit, role) },
];

/** How many hold it, leading to who they are. */
export function holdersCell(visit: MemberVisit, { id, holders }: RoleRow): Html {
  const text = holders === 0 ? 'nobody' : holders.toLocaleString('en');
  return holders > 0 && visit.may('org.members.read')
    ? html`<a href="${visit.at(`/members?status=all&role=${id}`)}">${text}</a>`
    : html`${text}`;
}
