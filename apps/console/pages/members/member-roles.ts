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
import { memberPage } from './member.ts';
import { memberPath, personIdOf } from './path.ts';
import { affectedKeys, hasSeen, readAgain, seenField } from './stops.ts';

/** Giving a member a role, and taking one. */
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
      return redirect(memberPath(visit, personId), { flash: 'The member has the role, from this moment on.' });
    },
    redraw: memberPage,
  }),

  member.view({
    name: 'showTakeRole',
    path: '/members/person/:personId/roles/:roleId/take',
    permission: 'org.members.manage',
    show: (visit) => takePage(visit, freshForm()),
  }),

  member.action({
    name: 'unassignRole',
    path: '/members/person/:personId/roles/:roleId/take',
    permission: 'org.members.manage',
    stepUp: true,
    form: z.object({ seen: z.string().max(100).default('') }),
    async act(visit, { seen }) {
      const personId = personIdOf(visit);
      const { roleId = '' } = visit.params;
      if (!hasSeen(seen, await stopsOf(visit, personId))) return readAgain((state) => takePage(visit, state));
      const { organizationId } = visit.organization;
      await unassignRole(visit.console.em, { organizationId, personId, roleId, by: visit.by });
      // Who takes a role from themselves may not see the page of members any more.
      const isSelf = personId === visit.by.personId;
      return redirect(isSelf ? visit.at('') : memberPath(visit, personId), {
        flash: 'The role is taken away, from this moment on.',
      });
    },
    redraw: takePage,
  }),
];

async function stopsOf(visit: MemberVisit, personId: string) {
  const { em, now } = visit.console;
  const change = { kind: 'unassign', roleId: visit.params.roleId ?? '' } as const;
  return (await previewImpact(em, visit.organization.organizationId, personId, change, now())).keys;
}

/** @throws NotFound when they do not hold the role, whosever it is. */
async function takePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const { em, now } = visit.console;
  const { name, personId, roles } = await getMemberDetails(
    em,
    visit.organization.organizationId,
    personIdOf(visit),
    now(),
  );
  const role = roles.find(({ id }) => id === visit.params.roleId);
  if (role === undefined) throw new NotFound();
  const stops = await stopsOf(visit, personId);
  const here = memberPath(visit, personId);
  return page({
    title: 'Take a role away',
    breadcrumbs: [
      [truncate(name, 80), here],
      ['Members', visit.at('/members')],
    ],
    body: form(visit, {
      action: `${here}/roles/${role.id}/take`,
      state,
      button: 'Take it away',
      kind: 'danger',
      fields: html`
        <p>${displayName(name)} loses the role ${displayName(role.name)} from this moment on${roles.length === 1 ? ', and then holds none: they may do nothing' : ''}.</p>
        ${affectedKeys(stops)}
        ${seenField(stops)}`,
      secondary: html`<a href="${here}">Back</a>`,
    }),
  });
}
