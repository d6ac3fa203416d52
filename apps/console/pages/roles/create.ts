import { z } from 'zod';
import { permissions } from '#domain/contract/scopes.ts';
import { createRole } from '#domain/organization/roles.ts';
import { choiceField, form, textField } from '../../components/form.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { choices, type FormState, freshForm, line, optionalLine } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { permissionChoices } from './permissions.ts';

/** Creates a custom role. */
export const createRoutes = [
  member.view({
    name: 'showNewRole',
    path: '/members/roles/new',
    permission: 'org.roles.manage',
    show: (visit) => newRolePage(visit, freshForm({ permissions: ['org.read'] })),
  }),

  member.action({
    name: 'createRole',
    path: '/members/roles/new',
    permission: 'org.roles.manage',
    stepUp: true,
    once: true,
    form: z.object({
      name: line('a name', 200),
      key: optionalLine(100),
      description: optionalLine(200),
      permissions: choices(permissions),
    }),
    async act(visit, { key, ...role }) {
      const { organizationId } = visit.organization;
      const input = { organizationId, by: visit.by, ...role, ...(key === '' ? {} : { key }) };
      const { id } = await createRole(visit.console.em, input);
      return redirect(visit.at(`/members/roles/${id}`), { flash: 'Role created.' });
    },
    redraw: newRolePage,
  }),
];

function newRolePage(visit: MemberVisit, state: FormState): Page {
  return page({
    title: 'Create role',
    breadcrumbs: [
      ['Roles', visit.at('/members/roles')],
      ['Members', visit.at('/members')],
    ],
    body: form(visit, {
      action: visit.at('/members/roles/new'),
      state,
      button: 'Create role',
      secondary: html`<a href="${visit.at('/members/roles')}">Cancel</a>`,
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
