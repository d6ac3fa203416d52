import { getRoleDetails, type RoleRow } from '#domain/members/list-roles.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { confirm } from '../../../components/confirm.ts';
import { copyableId } from '../../../components/copy.ts';
import { linkButton } from '../../../components/link.ts';
import { notice } from '../../../components/notice.ts';
import { detailList } from '../../../components/table.ts';
import { truncate } from '../../../components/text.ts';
import { type FormState, freshForm } from '../../../web/form.ts';
import { type Page, page } from '../../../web/response.ts';
import { member } from '../../../web/route.ts';
import type { MemberVisit } from '../../../web/visit.ts';
import { describeRole } from '../describe-role.ts';
import { holdersCell, rolesBreadcrumbs } from './list.ts';
import { permissionList } from './permissions.ts';

/** Shows one role: its permissions and members. */
export const roleRoutes = [
  member.view({
    name: 'showRole',
    path: '/members/roles/:roleId',
    permission: 'org.roles.read',
    show: (visit) => rolePage(visit, freshForm()),
  }),
];

/** Renders the page. `state` is that of a rejected deletion. */
export async function rolePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const role = await getRoleDetails(visit.console.database, visit.organizationId, visit.params.roleId ?? '');
  const mayChange = visit.may('org.roles.manage') && !role.isSystem;
  return page({
    title: truncate(role.name, 80),
    breadcrumbs: rolesBreadcrumbs(visit),
    body: html`
      ${state.problem !== null && role.holders > 0 ? notice('bad', state.problem) : nothing}
      <p>${describeRole(role)}</p>
      ${detailList([
        ['Type', role.isSystem ? 'System role' : 'Custom role'],
        ['Identifier', copyableId('identifier', role.key)],
        ['Members', holdersCell(visit, role)],
      ])}
      <section aria-labelledby="permissions"><h2 id="permissions">Permissions</h2>${permissionList(
        role.permissions,
      )}</section>
      ${mayChange ? editSection(visit, role, state) : nothing}`,
  });
}

function editSection(visit: MemberVisit, { id, name, holders }: RoleRow, state: FormState): Html {
  const here = visit.at(`/members/roles/${id}`);
  const deletion =
    holders > 0
      ? html`<p class="quiet">To delete this role, remove it from all members first.</p>`
      : confirm(visit, {
          summary: 'Delete role…',
          consequences: html`<p>No members or API keys are affected. You can’t undo this.</p>`,
          action: `${here}/delete`,
          button: `Delete role ${truncate(name, 60)}`,
          state,
        });
  return html`<section aria-labelledby="change"><h2 id="change">Edit role</h2>
    <p class="actions">${linkButton(`${here}/change`, 'Edit role', 'secondary')}</p>${deletion}</section>`;
}
