import type { HeldRole, MemberDetails } from '#domain/organization/list-members.ts';
import { listRoles } from '#domain/organization/list-roles.ts';
import { displayName, truncate } from '../../components/display-name.ts';
import { form, selectField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { table } from '../../components/table.ts';
import type { FormState } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { isOwner, whyNotGiven } from './grantable.ts';
import { memberPath } from './path.ts';

/** The roles of a member, with the ways to take one and to give another. */
export async function rolesSection(
  visit: MemberVisit,
  shown: MemberDetails,
  mayChange: boolean,
  state: FormState,
): Promise<Html> {
  const { personId, roles } = shown;
  const mayTake = ({ isSystem, key }: HeldRole) => mayChange && (isOwner(visit) || !isSystem || key !== 'owner');
  return html`<section aria-labelledby="roles"><h2 id="roles">Roles</h2>
    ${
      roles.length === 0
        ? html`<p>None: they may do nothing${mayChange ? ' until you give them one' : ''}.</p>`
        : table<HeldRole>({
            caption: 'Roles of this member',
            rows: roles,
            columns: [
              { heading: 'Role', main: true, cell: (role) => roleName(visit, role) },
              { heading: 'Kind', cell: ({ isSystem }) => (isSystem ? 'in every organization' : 'your own') },
            ],
            ...(mayChange
              ? {
                  actions: (role: HeldRole) =>
                    mayTake(role)
                      ? linkButton(
                          memberPath(visit, personId, `/roles/${role.id}/take`),
                          html`Take away<span class="visually-hidden"> the role ${role.name}</span>…`,
                          'secondary',
                        )
                      : nothing,
                }
              : {}),
          })
    }
    ${mayChange ? await giveForm(visit, shown, state) : nothing}</section>`;
}

function roleName(visit: MemberVisit, { id, name }: HeldRole): Html {
  return visit.may('org.roles.read')
    ? html`<a href="${visit.at(`/members/roles/${id}`)}">${displayName(name)}</a>`
    : displayName(name);
}

async function giveForm(visit: MemberVisit, { personId, roles }: MemberDetails, state: FormState): Promise<Html> {
  const held = new Set(roles.map(({ id }) => id));
  const others = (await listRoles(visit.console.em, visit.organization.organizationId)).filter(
    ({ id }) => !held.has(id),
  );
  const assignable = others.filter((role) => whyNotGiven(visit, role) === null);
  const isShort = assignable.length < others.length;
  if (assignable.length === 0)
    return html`<p class="quiet">${isShort ? 'The other roles give more than you hold, so they are not yours to give.' : 'They hold every role there is.'}</p>`;
  return form(visit, {
    action: memberPath(visit, personId, '/roles'),
    button: 'Give the role',
    kind: 'secondary',
    state: { ...state, problem: null },
    fields: selectField(state, {
      name: 'roleId',
      label: 'Give another role',
      ...(isShort ? { hint: 'Roles that give more than you hold are not listed.' } : {}),
      options: [
        { value: '', label: 'Choose a role' },
        ...assignable.map(({ id, name }) => ({ value: id, label: truncate(name, 80) })),
      ],
    }),
  });
}
