import { z } from 'zod';
import { previewImpact } from '#domain/organization/impact.ts';
import { getMemberDetails } from '#domain/organization/list-members.ts';
import { removeMember } from '#domain/organization/members.ts';
import { displayName, truncate } from '../../components/display-name.ts';
import { form } from '../../components/form.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { clientsPath, memberPath, personIdOf } from './path.ts';
import { affectedKeys, clientsThatStay, hasSeen, readAgain, seenField } from './stops.ts';

const seen = z.string().max(100).default('');

/** Removing a member, and leaving by oneself, for which nobody needs a permission. */
export const removeRoutes = [
  member.view({
    name: 'showRemove',
    path: '/members/person/:personId/remove',
    permission: 'org.members.manage',
    show: (visit) => removePage(visit, freshForm()),
  }),

  member.action({
    name: 'removeMember',
    path: '/members/person/:personId/remove',
    permission: 'org.members.manage',
    stepUp: true,
    form: z.object({ seen }),
    async act(visit, form) {
      const personId = personIdOf(visit);
      if (!hasSeen(form.seen, (await stopsOf(visit, personId)).keys))
        return readAgain((state) => removePage(visit, state));
      const { organizationId } = visit.organization;
      await removeMember(visit.console.em, { organizationId, personId, by: visit.by });
      const isSelf = personId === visit.by.personId;
      return redirect(isSelf ? '/' : visit.at('/members'), { flash: 'They are a member no more.' });
    },
    redraw: removePage,
  }),

  member.view({ name: 'showLeave', path: '/leave', show: (visit) => leavePage(visit, freshForm()) }),

  member.action({
    name: 'leaveOrganization',
    path: '/leave',
    stepUp: true,
    form: z.object({ seen }),
    async act(visit, form) {
      const { personId } = visit.by;
      if (!hasSeen(form.seen, (await stopsOf(visit, personId)).keys))
        return readAgain((state) => leavePage(visit, state));
      const { organizationId } = visit.organization;
      await removeMember(visit.console.em, { organizationId, personId, by: visit.by });
      return redirect('/', { flash: 'You have left the organization.' });
    },
    redraw: leavePage,
  }),
];

const stopsOf = (visit: MemberVisit, personId: string) =>
  previewImpact(visit.console.em, visit.organization.organizationId, personId, { kind: 'remove' }, visit.console.now());

async function removePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const { em, now } = visit.console;
  const { name, personId } = await getMemberDetails(em, visit.organization.organizationId, personIdOf(visit), now());
  const stops = await stopsOf(visit, personId);
  const here = memberPath(visit, personId);
  return page({
    title: 'Remove a member',
    breadcrumbs: [
      [truncate(name, 80), here],
      ['Members', visit.at('/members')],
    ],
    body: form(visit, {
      action: `${here}/remove`,
      state,
      button: 'Remove',
      kind: 'danger',
      fields: html`
        <p>${displayName(name)} leaves the organization from this moment on, without their roles. Their row stays, since clients and the log name it; they can be invited again.</p>
        ${affectedKeys(stops.keys)}
        ${clientsThatStay(stops, clientsPath(visit, personId))}
        ${seenField(stops.keys)}`,
      secondary: html`<a href="${here}">Back</a>`,
    }),
  });
}

async function leavePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const stops = await stopsOf(visit, visit.by.personId);
  return page({
    title: 'Leave the organization',
    body: form(visit, {
      action: visit.at('/leave'),
      state,
      button: 'Leave',
      kind: 'danger',
      fields: html`
        <p>You leave ${displayName(visit.organization.organizationName)} from this moment on, without your roles, and see nothing of it here any more. Only an invitation brings you back.</p>
        ${affectedKeys(stops.keys)}
        ${clientsThatStay(stops, null, 'you')}
        ${seenField(stops.keys)}`,
      secondary: html`<a href="${visit.at('')}">Stay</a>`,
    }),
  });
}
