import type { HeldRole, MemberDetails } from '#domain/organization/list-members.ts';
import { listRoles } from '#domain/organization/list-roles.ts';
import { displayName, truncate } from '../../components/display-name.ts';
import { form, selectField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { table } from '../../components/table.ts';
import type { FormState } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { isOwner, whyNotAssignable } from './grantable.ts';
import { memberPath } from './path.ts';

/** Draws the roles of a member, with the actions to remove and to assign roles. */
export async function rolesSection(
  visit: MemberVisit,
  shown: MemberDetails,
  mayChange: boolean,
  state: FormState,
): Promise<Html> {
  const { personId, roles } = shown;
  const mayRemove = ({ isSystem, key }: HeldRole) => mayChange && (isOwner(visit) || !isSystem || key !== 'owner');
  return html`<section aria-labelledby="roles"><h2 id="roles">Roles</h2>
    ${
      roles.length === 0
        ? html`<p>No roles${mayChange ? '. Assign a role to give this member access' : ''}.</p>`
        : table<HeldRole>({
            caption: 'Roles of this member',
            rows: roles,
            columns: [
              { heading: 'Role', main: true, cell: (role) => roleName(visit, role) },
              { heading: 'Type', cell: ({ isSystem }) => (isSystem ? 'System' : 'Custom') },
            ],
            ...(mayChange
              ? {
                  actions: (role: HeldRole) =>
                    mayRemove(role)
                      ? linkButton(
                          memberPath(visit, personId, `/roles/${role.id}/remove`),
                          html`Remove<span class="visually-hidden"> role ${role.name}</span>…`,
                          'secondary',
                        )
                      : nothing,
                }
              : {}),
          })
    }
    ${mayChange ? await assignForm(visit, shown, state) : nothing}</section>`;
}

function roleName(visit: MemberVisit, { id, name }: HeldRole): Html {
  return visit.may('org.roles.read')
    ? html`<a href="${visit.at(`/members/roles/${id}`)}">${displayName(name)}</a>`
    : displayName(name);
}

async function assignForm(visit: MemberVisit, { personId, roles }: MemberDetails, state: FormState): Promise<Html> {
  const held = new Set(roles.map(({ id }) => id));
  const others = (await listRoles(visit.console.em, visit.organization.organizationId)).filter(
    ({ id }) => !held.has(id),
  );
  const assignable = others.filter((role) => whyNotAssignable(visit, role) === null);
  const isShort = assignable.length < others.length;
  if (assignable.length === 0)
    return html`<p class="quiet">${
      isShort ? 'The other roles have permissions that you don’t have.' : 'This member has every role.'
    }</p>`;
  return form(visit, {
    action: memberPath(visit, personId, '/roles'),
    button: 'Assign role',
    kind: 'secondary',
    state: { ...state, problem: null },
    fields: selectField(state, {
      name: 'roleId',
      label: 'Assign another role',
      ...(isShort ? { hint: 'Roles with permissions that you don’t have are not listed.' } : {}),
      options: [
        { value: '', label: 'Choose a role' },
        ...assignable.map(({ id, name }) => ({ value: id, label: truncate(name, 80) })),
      ],
    }),
  });
}
