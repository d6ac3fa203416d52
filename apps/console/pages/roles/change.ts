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
import { affectedKeys, changedImpact, hasSeen, seenField } from '../members/impact.ts';
import { permissionChoices } from './permissions.ts';

/** Edits a custom role. When API keys would lose reads, a page lists them first. */
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
      name: line('a name', 200),
      description: optionalLine(200),
      permissions: choices(permissions),
      seen: z.string().max(100).default(''),
    }),
    async act(visit, { seen, ...wanted }) {
      const { em, now } = visit.console;
      const { organizationId } = visit.organization;
      const role = await getCustomRole(visit);
      const stops = await previewRoleImpact(em, organizationId, role.id, wanted.permissions, now());
      if (stops.length > 0 && !hasSeen(seen, stops)) return confirmPage(visit, role, wanted, stops, seen !== '');
      await changeRole(em, { organizationId, roleId: role.id, by: visit.by, ...wanted });
      return redirect(visit.at(`/members/roles/${role.id}`), {
        flash: 'Role updated.',
      });
    },
    redraw: changePage,
  }),
];

/** Returns the custom role in the path. @throws NotFound for a system role, which can't be edited. */
async function getCustomRole(visit: MemberVisit): Promise<RoleRow> {
  const role = await getRoleDetails(visit.console.em, visit.organization.organizationId, visit.params.roleId ?? '');
  if (role.isSystem) throw new NotFound();
  return role;
}

/** `typed` null: as the role is now. */
async function changePage(visit: MemberVisit, typed: FormState | null): Promise<Page> {
  const role = await getCustomRole(visit);
  const { name, description, holders } = role;
  const state = typed ?? freshForm({ name, description, permissions: role.permissions });
  const here = visit.at(`/members/roles/${role.id}`);
  return page({
    title: `Edit role ${truncate(role.name, 80)}`,
    breadcrumbs: breadcrumbsOf(visit, role),
    body: form(visit, {
      action: `${here}/change`,
      state,
      button: 'Save changes',
      secondary: html`<a href="${here}">Cancel</a>`,
      fields: html`
        <p>${
          holders === 0
            ? 'No members have this role.'
            : `Changes apply immediately to ${holders === 1 ? '1 member' : `${holders.toLocaleString('en')} members`}.`
        } If API keys would lose permissions, you can review them before the change.</p>
        ${textField(state, { name: 'name', label: 'Name', maxLength: 200 })}
        ${textField(state, { name: 'description', label: 'Description (optional)', required: false, maxLength: 200 })}
        ${choiceField(state, {
          name: 'permissions',
          label: 'Permissions',
          kind: 'checkbox',
          choices: permissionChoices(visit, role.permissions),
        })}`,
    }),
  });
}

/** Asks for confirmation when API keys would lose reads. The form carries the typed values. */
function confirmPage(
  visit: MemberVisit,
  role: RoleRow,
  wanted: { name: string; description: string; permissions: Permission[] },
  stops: readonly AffectedKey[],
  wasAsked: boolean,
): Page {
  const here = visit.at(`/members/roles/${role.id}`);
  const lost = role.permissions.filter((permission) => !wanted.permissions.includes(permission));
  const problem = wasAsked ? changedImpact : null;
  return page({
    title: 'Review affected API keys',
    status: wasAsked ? 422 : 200,
    breadcrumbs: breadcrumbsOf(visit, role),
    body: form(visit, {
      action: `${here}/change`,
      button: `Edit role ${truncate(role.name, 60)}`,
      kind: 'danger',
      state: { ...freshForm(), problem },
      fields: html`
        <p>Removes
          ${lost.map((permission, index): Html => html`${index === 0 ? nothing : ', '}<code>${permission}</code>`)}
            from role ${displayName(role.name)}. Not saved yet.</p>
        ${affectedKeys(stops)}
        ${hiddenField('name', wanted.name)}${hiddenField('description', wanted.description)}
        ${wanted.permissions.map((permission) => hiddenField('permissions', permission))}${seenField(stops)}`,
      secondary: html`<a href="${here}/change">Cancel</a>`,
    }),
  });
}

const breadcrumbsOf = (visit: MemberVisit, { id, name }: RoleRow): Page['breadcrumbs'] => [
  [truncate(name, 80), visit.at(`/members/roles/${id}`)],
  ['Roles', visit.at('/members/roles')],
  ['Members', visit.at('/members')],
];
