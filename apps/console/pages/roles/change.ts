import { z } from 'zod';
import { type Permission, permissions } from '#domain/contract/scopes.ts';
import { type AffectedKey, previewRoleImpact } from '#domain/organization/impact.ts';
import { getRoleDetails, type RoleRow } from '#domain/organization/list-roles.ts';
import { changeRole } from '#domain/organization/roles.ts';
import { displayName, truncate } from '../../components/display-name.ts';
import { choiceField, form, hiddenField, textField } from '../../components/form.ts';
import { NotFound, type Page, page, redirect } from '../../web/answer.ts';
import { choices, type FormState, freshForm, line, optionalLine } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { affectedKeys, hasSeen, seenField } from '../members/stops.ts';
import { permissionChoices } from './permissions.ts';

/** Changing an own role. Where keys would stop, a page says which before anything is done. */
export const changeRoutes = [
  member.view({
    name: 'showRoleChange',
    path: '/members/roles/:roleId/change',
    permission: 'org.roles.manage',
    show: (visit) => changePage(visit, null),
  }),

  member.action({
    name: 'changeRole',
    path: '/members/roles/:roleId/change',
    permission: 'org.roles.manage',
    stepUp: true,
    form: z.object({
      name: line('The name', 200),
      description: optionalLine('The description', 200),
      permissions: choices(permissions),
      seen: z.string().max(100).default(''),
    }),
    async act(visit, { seen, ...wanted }) {
      const { em, now } = visit.console;
      const { organizationId } = visit.organization;
      const role = await getOwnRole(visit);
      const stops = await previewRoleImpact(em, organizationId, role.id, wanted.permissions, now());
      if (stops.length > 0 && !hasSeen(seen, stops)) return confirmPage(visit, role, wanted, stops, seen !== '');
      await changeRole(em, { organizationId, roleId: role.id, by: visit.by, ...wanted });
      return redirect(visit.at(`/members/roles/${role.id}`), {
        flash: 'The role is changed for everybody who holds it, from this moment on.',
      });
    },
    redraw: changePage,
  }),
];

/** @throws NotFound for a system role, which has no page to change it. */
async function getOwnRole(visit: MemberVisit): Promise<RoleRow> {
  const role = await getRoleDetails(visit.console.em, visit.organization.organizationId, visit.params.roleId ?? '');
  if (role.isSystem) throw new NotFound();
  return role;
}

/** `typed` null: as the role is now. */
async function changePage(visit: MemberVisit, typed: FormState | null): Promise<Page> {
  const role = await getOwnRole(visit);
  const { name, description, holders } = role;
  const state = typed ?? freshForm({ name, description, permissions: role.permissions });
  const here = visit.at(`/members/roles/${role.id}`);
  return page({
    title: 'Change a role',
    breadcrumbs: breadcrumbsOf(visit, role),
    body: form(visit, {
      action: `${here}/change`,
      state,
      button: 'Change the role',
      secondary: html`<a href="${here}">Back</a>`,
      fields: html`
        <p>${holders === 0 ? 'Nobody holds it now.' : `It changes for ${holders === 1 ? 'the one member who holds it' : `all ${holders.toLocaleString('en')} who hold it`}, at once.`} When it loses a permission that keys rest on, you are told which keys stop before anything is done.</p>
        ${textField(state, { name: 'name', label: 'Name', maxLength: 200 })}
        ${textField(state, { name: 'description', label: 'Description', required: false, maxLength: 200 })}
        ${choiceField(state, {
          name: 'permissions',
          label: 'What it allows',
          kind: 'checkbox',
          choices: permissionChoices(visit, role.permissions),
        })}`,
    }),
  });
}

/** The question before keys stop. What was typed is carried along. */
function confirmPage(
  visit: MemberVisit,
  role: RoleRow,
  wanted: { name: string; description: string; permissions: Permission[] },
  stops: readonly AffectedKey[],
  wasAsked: boolean,
): Page {
  const here = visit.at(`/members/roles/${role.id}`);
  const lost = role.permissions.filter((permission) => !wanted.permissions.includes(permission));
  const problem = wasAsked
    ? 'What this stops has changed since you were told, so nothing was done. Read it once more.'
    : null;
  return page({
    title: stops.some(({ losesAllScopes }) => losesAllScopes)
      ? 'This stops API keys'
      : 'This takes reads from API keys',
    status: wasAsked ? 422 : 200,
    breadcrumbs: breadcrumbsOf(visit, role),
    body: form(visit, {
      action: `${here}/change`,
      button: 'Change the role all the same',
      kind: 'danger',
      state: { ...freshForm(), problem },
      fields: html`
        <p>Without ${lost.map((permission, index): Html => html`${index === 0 ? nothing : ', '}<code>${permission}</code>`)} in the role ${displayName(role.name)}, keys that its holders made read less. Nothing is changed yet.</p>
        ${affectedKeys(stops)}
        ${hiddenField('name', wanted.name)}${hiddenField('description', wanted.description)}
        ${wanted.permissions.map((permission) => hiddenField('permissions', permission))}${seenField(stops)}`,
      secondary: html`<a href="${here}/change">Back</a>`,
    }),
  });
}

const breadcrumbsOf = (visit: MemberVisit, { id, name }: RoleRow): Page['breadcrumbs'] => [
  [truncate(name, 80), visit.at(`/members/roles/${id}`)],
  ['Roles', visit.at('/members/roles')],
  ['Members', visit.at('/members')],
];
