import { z } from 'zod';
import { permissions } from '#domain/contract/scopes.ts';
import { createRole } from '#domain/members/roles.ts';
import { html } from '#runtime/pages/html.ts';
import { choiceField, form, textField } from '../../../components/form.ts';
import { choices, type FormState, line, optionalLine } from '../../../web/form.ts';
import { type Page, page, redirect } from '../../../web/response.ts';
import { member } from '../../../web/route.ts';
import type { MemberVisit } from '../../../web/visit.ts';
import { rolesBreadcrumbs } from './list.ts';
import { permissionChoices } from './permissions.ts';

export const createRoutes = member.formPage({
  pageName: 'showNewRole',
  name: 'createRole',
  path: '/members/roles/new',
  permission: 'org.roles.manage',
  stepUp: true,
  once: true,
  values: () => ({ permissions: ['org.read'] }),
  form: z.object({
    name: line('a name', 200),
    key: optionalLine(100),
    description: optionalLine(200),
    permissions: choices(permissions),
  }),
  async act(visit, { key, ...role }) {
    const input = { ...visit.request, ...role, ...(key === '' ? {} : { key }) };
    const { id } = await createRole(visit.console.database, input);
    return redirect(visit.at(`/members/roles/${id}`), { flash: 'Role created.' });
  },
  render: newRolePage,
});

function newRolePage(visit: MemberVisit, state: FormState): Page {
  return page({
    title: 'Create role',
    breadcrumbs: rolesBreadcrumbs(visit),
    body: form(visit, {
      state,
      button: 'Create role',
      cancel: visit.at('/members/roles'),
      fields: html`
        ${textField(state, {
          name: 'name',
          label: 'Name',
          maxLength: 200,
          hint: 'For example “Intake” or “Case manager”.',
        })}
        ${textField(state, { name: 'description', label: 'Description (optional)', required: false, maxLength: 200 })}
        ${textField(state, {
          name: 'key',
          label: 'Identifier (optional)',
          required: false,
          maxLength: 100,
          exact: true,
          hint:
            'The role’s identifier in the API. By default “Case manager” becomes case-manager. You can’t ' +
            'change it later.',
        })}
        ${choiceField(state, {
          name: 'permissions',
          label: 'Permissions',
          kind: 'checkbox',
          hint: 'You can include permissions that you have.',
          choices: permissionChoices(visit, []),
        })}`,
    }),
  });
}
