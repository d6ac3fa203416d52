import { z } from 'zod';
import { reinstateMember, suspendMember } from '#domain/members/change.ts';
import { getMemberDetails } from '#domain/members/list-members.ts';
import { html } from '#runtime/pages/html.ts';
import { displayName, truncate } from '../../components/text.ts';
import { redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import { affectedClients, impactFormPage } from './impact.ts';
import { memberPage } from './member.ts';
import { clientsPath, memberPath, readPersonId } from './path.ts';

/** Suspends a member's access and reinstates it. */
export const suspendRoutes = [
  ...impactFormPage({
    pageName: 'showSuspend',
    name: 'suspendMember',
    path: '/members/person/:personId/suspend',
    permission: 'org.members.manage',
    buildChange: () => ({ kind: 'suspend' }),
    confirm: (visit, { name, personId }, impact) => ({
      title: `Suspend ${truncate(name, 80)}?`,
      button: `Suspend ${truncate(name, 60)}`,
      consequence: html`${displayName(name)} loses access until you reinstate them. Their roles are kept. A pending
        invitation link stops working.`,
      clients: affectedClients(impact, clientsPath(visit, personId)),
    }),
    async act(visit, personId) {
      await suspendMember(visit.console.database, { ...visit.request, personId });
      return redirect(memberPath(visit, personId), { flash: 'Member suspended.' });
    },
  }),

  member.action({
    name: 'reinstateMember',
    path: '/members/person/:personId/reinstate',
    permission: 'org.members.manage',
    stepUp: true,
    form: z.object({}),
    async act(visit) {
      const { database, now } = visit.console;
      const personId = readPersonId(visit);
      await reinstateMember(database, { ...visit.request, personId });
      const { status } = await getMemberDetails(database, visit.organizationId, personId, now());
      const flash =
        status === 'invited'
          ? 'The member had not joined yet. Create a new invitation link for them.'
          : 'Member reinstated.';
      return redirect(memberPath(visit, personId), { flash });
    },
    rerender: memberPage,
  }),
];
