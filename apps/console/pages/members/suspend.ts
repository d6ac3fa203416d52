import { z } from 'zod';
import { previewImpact } from '#domain/organization/impact.ts';
import { getMemberDetails } from '#domain/organization/list-members.ts';
import { reinstateMember, suspendMember } from '#domain/organization/members.ts';
import { displayName, truncate } from '../../components/display-name.ts';
import { form } from '../../components/form.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { memberPage } from './member.ts';
import { clientsPath, memberPath, personIdOf } from './path.ts';
import { affectedKeys, clientsThatStay, hasSeen, readAgain, seenField } from './stops.ts';

/** Taking a member's access away for a while, and giving it back. */
export const suspendRoutes = [
  member.view({
    name: 'showSuspend',
    path: '/members/person/:personId/suspend',
    permission: 'org.members.manage',
    show: (visit) => suspendPage(visit, freshForm()),
  }),

  member.action({
    name: 'suspendMember',
    path: '/members/person/:personId/suspend',
    permission: 'org.members.manage',
    stepUp: true,
    form: z.object({ seen: z.string().max(100).default('') }),
    async act(visit, { seen }) {
      const { em } = visit.console;
      const personId = personIdOf(visit);
      if (!hasSeen(seen, (await stopsOf(visit, personId)).keys)) return readAgain((state) => suspendPage(visit, state));
      await suspendMember(em, { organizationId: visit.organization.organizationId, personId, by: visit.by });
      return redirect(memberPath(visit, personId), { flash: 'The member is suspended, from this moment on.' });
    },
    redraw: suspendPage,
  }),

  member.action({
    name: 'reinstateMember',
    path: '/members/person/:personId/reinstate',
    permission: 'org.members.manage',
    stepUp: true,
    form: z.object({}),
    async act(visit) {
      const personId = personIdOf(visit);
      const { organizationId } = visit.organization;
      const { em, now } = visit.console;
      await reinstateMember(em, { organizationId, personId, by: visit.by });
      const { status } = await getMemberDetails(em, organizationId, personId, now());
      const flash =
        status === 'invited'
          ? 'They had not come in yet, so they are invited again: make a link for them.'
          : 'The member is reinstated; their keys read again.';
      return redirect(memberPath(visit, personId), { flash });
    },
    redraw: memberPage,
  }),
];

const stopsOf = (visit: MemberVisit, personId: string) =>
  previewImpact(
    visit.console.em,
    visit.organization.organizationId,
    personId,
    { kind: 'suspend' },
    visit.console.now(),
  );

async function suspendPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const { em, now } = visit.console;
  const personId = personIdOf(visit);
  const { name } = await getMemberDetails(em, visit.organization.organizationId, personId, now());
  const stops = await stopsOf(visit, personId);
  const here = memberPath(visit, personId);
  return page({
    title: 'Suspend a member',
    breadcrumbs: [
      [truncate(name, 80), here],
      ['Members', visit.at('/members')],
    ],
    body: form(visit, {
      action: `${here}/suspend`,
      state,
      button: 'Suspend',
      kind: 'danger',
      fields: html`
        <p>${displayName(name)} may do nothing here until somebody reinstates them. They keep their roles; a link that is on its way to them is void.</p>
        ${affectedKeys(stops.keys)}
        ${clientsThatStay(stops, clientsPath(visit, personId))}
        ${seenField(stops.keys)}`,
      secondary: html`<a href="${here}">Back</a>`,
    }),
  });
}
