import { z } from 'zod';
import { type Permission, permissions } from '#domain/contract/scopes.ts';
import { type AffectedKey, previewRoleImpact } from '#domain/members/impact.ts';
import { getRoleDetails, type RoleRow } from '#domain/members/list-roles.ts';
import { changeRole } from '#domain/members/roles.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { choiceField, form, hiddenField, textField } from '../../../components/form.ts';
import { displayName, formatCount, truncate } from '../../../components/text.ts';
import { choices, type FormState, freshForm, line, optionalLine } from '../../../web/form.ts';
import { NotFoundError, type Page, page, redirect } from '../../../web/response.ts';
import { member } from '../../../web/route.ts';
import type { MemberVisit } from '../../../web/visit.ts';
import { affectedKeys, changedImpact, hasSeen, seenField, seenSchema } from '../impact.ts';
import { rolesBreadcrumbs } from './list.ts';
import { permissionChoices } from './permissions.ts';

/** Edits a custom role. When API keys would lose reads, a page lists them first. */
export const changeRoutes = member.formPage({
  pageName: 'showRoleChange',
  name: 'changeRole',
  path: '/members/roles/:roleId/change',
  permission: 'org.roles.manage',
  stepUp: true,
  async values(_query, visit) {
    const { name, description, permissions } = await getCustomRole(visit);
    return { name, description, permissions };
  },
  form: z.object({
    name: line('a name', 200),
    description: optionalLine(200),
    permissions: choices(permissions),
    seen: seenSchema,
  }),
  async act(visit, { seen, ...wanted }) {
    const { database, now } = visit.console;
    const role = await getCustomRole(visit);
    const affected = await previewRoleImpact(database, visit.organizationId, role.id, wanted.permissions, now());
    if (affected.length > 0 && !hasSeen(seen, affected)) return confirmPage(visit, role, wanted, affected, seen !== '');
    await changeRole(database, { ...visit.request, roleId: role.id, ...wanted });
    return redirect(visit.at(`/members/roles/${role.id}`), { flash: 'Role updated.' });
  },
  render: changePage,
});

/** Returns the custom role in the path. @throws NotFoundError for a system role. */
async function getCustomRole(visit: MemberVisit): Promise<RoleRow> {
  const role = await getRoleDetails(visit.console.database, visit.organizationId, visit.params.roleId ?? '');
  if (role.isSystem) throw new NotFoundError();
  return role;
}

async function changePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const role = await getCustomRole(visit);
  const { holders } = role;
  const here = visit.at(`/members/roles/${role.id}`);
  return page({
    title: `Edit role ${truncate(role.name, 80)}`,
    breadcrumbs: buildBreadcrumbs(visit, role),
    body: form(visit, {
      state,
      button: 'Save changes',
      cancel: here,
      fields: html`
        <p>${
          holders === 0
            ? 'No members have this role.'
            : `Changes apply immediately to ${formatCount(holders, 'member', 'members')}.`
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

/**
 * Asks for confirmation when API keys would lose reads. The form carries the typed values.
 *
 * @param wasConfirmed - the member confirmed other affected keys than these.
 */
function confirmPage(
  visit: MemberVisit,
  role: RoleRow,
  wanted: { name: string; description: string; permissions: Permission[] },
  affected: readonly AffectedKey[],
  wasConfirmed: boolean,
): Page {
  const lost = role.permissions.filter((permission) => !wanted.permissions.includes(permission));
  const problem = wasConfirmed ? changedImpact : null;
  return page({
    title: 'Review affected API keys',
    status: wasConfirmed ? 422 : 200,
    breadcrumbs: buildBreadcrumbs(visit, role),
    body: form(visit, {
      button: `Edit role ${truncate(role.name, 60)}`,
      kind: 'danger',
      state: { ...freshForm(), problem },
      fields: html`
        <p>Removes
          ${lost.map((permission, index): Html => html`${index === 0 ? nothing : ', '}<code>${permission}</code>`)}
          from role ${displayName(role.name)}. Not saved yet.</p>
        ${affectedKeys(affected)}
        ${hiddenField('name', wanted.name)}${hiddenField('description', wanted.description)}
        ${wanted.permissions.map((permission) => hiddenField('permissions', permission))}${seenField(affected)}`,
      cancel: visit.path,
    }),
  });
}

const buildBreadcrumbs = (visit: MemberVisit, { id, name }: RoleRow): Page['breadcrumbs'] => [
  [truncate(name, 80), visit.at(`/members/roles/${id}`)],
  ...rolesBreadcrumbs(visit),
];
