import type { AssignedRole, MemberDetails } from '#domain/members/list-members.ts';
import { listRoles } from '#domain/members/list-roles.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { form, selectField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { table } from '../../components/table.ts';
import { displayName, truncate } from '../../components/text.ts';
import type { FormState } from '../../web/form.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { isOwner, whyNotAssignable } from './assignable-roles.ts';
import { memberPath } from './path.ts';

/** Renders the roles of a member, with the actions to remove and to assign roles. */
export async function rolesSection(
  visit: MemberVisit,
  shown: MemberDetails,
  mayChange: boolean,
  state: FormState,
): Promise<Html> {
  const { personId, roles } = shown;
  function removeLink({ id, name, isSystem, key }: AssignedRole): Html {
    if (isSystem && key === 'owner' && !isOwner(visit)) return nothing;
    const label = html`Remove<span class="visually-hidden"> role ${name}</span>…`;
    return linkButton(memberPath(visit, personId, `/roles/${id}/remove`), label, 'secondary');
  }
  return html`<section aria-labelledby="roles"><h2 id="roles">Roles</h2>
    ${
      roles.length === 0
        ? html`<p>No roles${mayChange ? '. Assign a role to give this member access' : ''}.</p>`
        : table<AssignedRole>({
            caption: 'Roles of this member',
            rows: roles,
            columns: [
              { heading: 'Role', main: true, cell: (role) => roleName(visit, role) },
              { heading: 'Type', cell: ({ isSystem }) => (isSystem ? 'System' : 'Custom') },
            ],
            actions: mayChange ? removeLink : null,
          })
    }
    ${mayChange ? await assignForm(visit, shown, state) : nothing}</section>`;
}

function roleName(visit: MemberVisit, { id, name }: AssignedRole): Html {
  return visit.may('org.roles.read')
    ? html`<a href="${visit.at(`/members/roles/${id}`)}">${displayName(name)}</a>`
    : displayName(name);
}

async function assignForm(visit: MemberVisit, { personId, roles }: MemberDetails, state: FormState): Promise<Html> {
  const assigned = new Set(roles.map(({ id }) => id));
  const all = await listRoles(visit.console.database, visit.organizationId);
  const others = all.filter(({ id }) => !assigned.has(id));
  const assignable = others.filter((role) => whyNotAssignable(visit, role) === null);
  const isPartial = assignable.length < others.length;
  if (assignable.length === 0)
    return html`<p class="quiet">${
      isPartial ? 'The other roles have permissions that you don’t have.' : 'This member has every role.'
    }</p>`;
  return form(visit, {
    action: memberPath(visit, personId, '/roles'),
    button: 'Assign role',
    kind: 'secondary',
    state: { ...state, problem: null },
    fields: selectField(state, {
      name: 'roleId',
      label: 'Assign another role',
      hint: isPartial ? 'Roles with permissions that you don’t have are not listed.' : null,
      options: [
        { value: '', label: 'Choose a role' },
        ...assignable.map(({ id, name }) => ({ value: id, label: truncate(name, 80) })),
      ],
    }),
  });
}
