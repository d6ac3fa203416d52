import { getRoleDetails } from '#domain/organization/list-roles.ts';
import { confirm } from '../../components/confirm.ts';
import { truncate } from '../../components/display-name.ts';
import { linkButton } from '../../components/link.ts';
import { notice } from '../../components/notice.ts';
import { detailList } from '../../components/table.ts';
import { type Page, page } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { holdersCell } from './list.ts';
import { roleMeaning } from './meaning.ts';
import { permissionList } from './permissions.ts';

/** One role: what it gives, and who holds it. */
export const roleRoutes = [
  member.view({
    name: 'showRole',
    path: '/members/roles/:roleId',
    permission: 'org.roles.read',
    show: (visit) => rolePage(visit, freshForm()),
  }),
];

/** `state` is that of the form that deletes it, when it was refused. */
export async function rolePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const role = await getRoleDetails(visit.console.em, visit.organization.organizationId, visit.params.roleId ?? '');
  const here = visit.at(`/members/roles/${role.id}`);
  const mayChange = visit.may('org.roles.manage') && !role.isSystem;
  return page({
    title: truncate(role.name, 80),
    breadcrumbs: [
      ['Roles', visit.at('/members/roles')],
      ['Members', visit.at('/members')],
    ],
    body: html`
      ${state.problem !== null && role.holders > 0 ? notice('bad', state.problem) : nothing}
      <p>${roleMeaning(role)}</p>
      ${detailList([
        ['Kind', role.isSystem ? 'The same in every organization; it cannot be changed' : 'Your organization’s own'],
        ['Key in the API', html`<code>${role.key}</code>`],
        ['Held by', holdersCell(visit, role)],
      ])}
      <section aria-labelledby="permissions"><h2 id="permissions">What it allows</h2>${permissionList(role.permissions)}</section>
      ${
        mayChange
          ? html`<section aria-labelledby="change"><h2 id="change">Change it</h2>
              <p class="actions">${linkButton(`${here}/change`, 'Change name or permissions', 'secondary')}</p>
              ${
                role.holders > 0
                  ? html`<p class="quiet">It can be deleted once nobody holds it.</p>`
                  : confirm(visit, {
                      summary: 'Delete…',
                      consequences: html`<p>Nobody holds it, so nobody loses anything, and no API key stops. It cannot be brought back.</p>`,
                      action: `${here}/delete`,
                      button: 'Delete the role',
                      state,
                    })
              }</section>`
          : nothing
      }`,
  });
}
