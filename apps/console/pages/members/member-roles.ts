import { z } from 'zod';
import { previewImpact } from '#domain/organization/impact.ts';
import { getMemberDetails } from '#domain/organization/list-members.ts';
import { assignRole, unassignRole } from '#domain/organization/member-roles.ts';
import { displayName, truncate } from '../../components/display-name.ts';
import { form } from '../../components/form.ts';
import { NotFound, type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { affectedKeys, hasSeen, reviewAgain, seenField } from './impact.ts';
import { memberPage } from './member.ts';
import { memberPath, personIdOf } from './path.ts';

/** Assigns roles to members and removes them. */
export const memberRoleRoutes = [
  member.action({
    name: 'assignRole',
    path: '/members/person/:personId/roles',
    permission: 'org.members.manage',
    stepUp: true,
    form: z.object({ roleId: z.uuid('Choose a role.') }),
    async act(visit, { roleId }) {
      const personId = personIdOf(visit);
      const { organizationId } = visit.organization;
      await assignRole(visit.console.em, { organizationId, personId, roleId, by: visit.by });
      return redirect(memberPath(visit, personId), { flash: 'Role assigned.' });
    },
    redraw: memberPage,
  }),

  member.view({
    name: 'showRemoveRole',
    path: '/members/person/:personId/roles/:roleId/remove',
    permission: 'org.members.manage',
    show: (visit) => removeRolePage(visit, freshForm()),
  }),

  member.action({
    name: 'unassignRole',
    path: '/members/person/:personId/roles/:roleId/remove',
    permission: 'org.members.manage',
    stepUp: true,
    form: z.object({ seen: z.string().max(100).default('') }),
    async act(visit, { seen }) {
      const personId = personIdOf(visit);
      const { roleId = '' } = visit.params;
      if (!hasSeen(seen, await previewRemoval(visit, personId)))
        return reviewAgain((state) => removeRolePage(visit, state));
      const { organizationId } = visit.organization;
      await unassignRole(visit.console.em, { organizationId, personId, roleId, by: visit.by });
      // A member who removes their own role may no longer see the page of members.
      const isSelf = personId === visit.by.personId;
      return redirect(isSelf ? visit.at('') : memberPath(visit, personId), {
        flash: 'Role removed.',
      });
    },
    redraw: removeRolePage,
  }),
];

async function previewRemoval(visit: MemberVisit, personId: string) {
  const { em, now } = visit.console;
  const change = { kind: 'unassign', roleId: visit.params.roleId ?? '' } as const;
  return (await previewImpact(em, visit.organization.organizationId, personId, change, now())).keys;
}

/** Draws the confirmation. @throws NotFound when the member does not have the role. */
async function removeRolePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const { em, now } = visit.console;
  const { name, personId, roles } = await getMemberDetails(
    em,
    visit.organization.organizationId,
    personIdOf(visit),
    now(),
  );
  const role = roles.find(({ id }) => id === visit.params.roleId);
  if (role === undefined) throw new NotFound();
  const keys = await previewRemoval(visit, personId);
  const here = memberPath(visit, personId);
  return page({
    title: `Remove role ${truncate(role.name, 60)}?`,
    breadcrumbs: [
      [truncate(name, 80), here],
      ['Members', visit.at('/members')],
    ],
    body: form(visit, {
      action: `${here}/roles/${role.id}/remove`,
      state,
      button: `Remove role ${truncate(role.name, 60)}`,
      kind: 'danger',
      fields: html`
        <p>${displayName(name)} loses role ${displayName(role.name)}
          immediately${roles.length === 1 ? ' and then has no permissions' : ''}.</p>
        ${affectedKeys(keys)}
        ${seenField(keys)}`,
      secondary: html`<a href="${here}">Cancel</a>`,
    }),
  });
}
