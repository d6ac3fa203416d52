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
import { affectedClients, affectedKeys, hasSeen, reviewAgain, seenField } from './impact.ts';
import { memberPage } from './member.ts';
import { clientsPath, memberPath, personIdOf } from './path.ts';

/** Suspends a member's access and reinstates it. */
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
      if (!hasSeen(seen, (await previewSuspension(visit, personId)).keys))
        return reviewAgain((state) => suspendPage(visit, state));
      await suspendMember(em, { organizationId: visit.organization.organizationId, personId, by: visit.by });
      return redirect(memberPath(visit, personId), { flash: 'Member suspended.' });
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
          ? 'The member had not joined yet. Create a new invitation link for them.'
          : 'Member reinstated.';
      return redirect(memberPath(visit, personId), { flash });
    },
    redraw: memberPage,
  }),
];

const previewSuspension = (visit: MemberVisit, personId: string) =>
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
  const impact = await previewSuspension(visit, personId);
  const here = memberPath(visit, personId);
  return page({
    title: `Suspend ${truncate(name, 80)}?`,
    breadcrumbs: [
      [truncate(name, 80), here],
      ['Members', visit.at('/members')],
    ],
    body: form(visit, {
      action: `${here}/suspend`,
      state,
      button: `Suspend ${truncate(name, 60)}`,
      kind: 'danger',
      fields: html`
        <p>${displayName(name)} loses access until you reinstate them. Their roles are kept. A pending invitation link
          stops working.</p>
        ${affectedKeys(impact.keys)}
        ${affectedClients(impact, clientsPath(visit, personId))}
        ${seenField(impact.keys)}`,
      secondary: html`<a href="${here}">Cancel</a>`,
    }),
  });
}
