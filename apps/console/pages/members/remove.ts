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
import { affectedClients, affectedKeys, hasSeen, reviewAgain, seenField } from './impact.ts';
import { clientsPath, memberPath, personIdOf } from './path.ts';

const seen = z.string().max(100).default('');

/** Removes a member, or lets a member leave, which needs no permission. */
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
      if (!hasSeen(form.seen, (await previewRemoval(visit, personId)).keys))
        return reviewAgain((state) => removePage(visit, state));
      const { organizationId } = visit.organization;
      const { name } = await getMemberDetails(visit.console.em, organizationId, personId, visit.console.now());
      await removeMember(visit.console.em, { organizationId, personId, by: visit.by });
      const isSelf = personId === visit.by.personId;
      return redirect(isSelf ? '/' : visit.at('/members'), {
        flash: isSelf ? 'You have left the organization.' : `${truncate(name, 80)} was removed.`,
      });
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
      if (!hasSeen(form.seen, (await previewRemoval(visit, personId)).keys))
        return reviewAgain((state) => leavePage(visit, state));
      const { organizationId } = visit.organization;
      await removeMember(visit.console.em, { organizationId, personId, by: visit.by });
      return redirect('/', { flash: 'You have left the organization.' });
    },
    redraw: leavePage,
  }),
];

const previewRemoval = (visit: MemberVisit, personId: string) =>
  previewImpact(visit.console.em, visit.organization.organizationId, personId, { kind: 'remove' }, visit.console.now());

async function removePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const { em, now } = visit.console;
  const { name, personId } = await getMemberDetails(em, visit.organization.organizationId, personIdOf(visit), now());
  const impact = await previewRemoval(visit, personId);
  const here = memberPath(visit, personId);
  return page({
    title: `Remove ${truncate(name, 80)}?`,
    breadcrumbs: [
      [truncate(name, 80), here],
      ['Members', visit.at('/members')],
    ],
    body: form(visit, {
      action: `${here}/remove`,
      state,
      button: `Remove ${truncate(name, 60)}`,
      kind: 'danger',
      fields: html`
        <p>${displayName(name)} loses access and all roles immediately. You can invite them again later.</p>
        ${affectedKeys(impact.keys)}
        ${affectedClients(impact, clientsPath(visit, personId))}
        ${seenField(impact.keys)}`,
      secondary: html`<a href="${here}">Cancel</a>`,
    }),
  });
}

async function leavePage(visit: MemberVisit, state: FormState): Promise<Page> {
  const impact = await previewRemoval(visit, visit.by.personId);
  return page({
    title: `Leave ${truncate(visit.organization.organizationName, 60)}?`,
    body: form(visit, {
      action: visit.at('/leave'),
      state,
      button: `Leave ${truncate(visit.organization.organizationName, 60)}`,
      kind: 'danger',
      fields: html`
        <p>You lose access to ${displayName(visit.organization.organizationName)} and all roles immediately. To return,
          you need a new invitation.</p>
        ${affectedKeys(impact.keys)}
        ${affectedClients(impact, null, 'you')}
        ${seenField(impact.keys)}`,
      secondary: html`<a href="${visit.at('')}">Cancel</a>`,
    }),
  });
}
