import { z } from 'zod';
import { endGrant } from '#domain/organization/grants.ts';
import { type ClientDetails, getClient } from '#domain/organization/list-clients.ts';
import { displayName, truncate } from '../../components/display-name.ts';
import { form } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { clientsBreadcrumbs } from './cells.ts';

/** Ending a family's access to a professional. */
export const endRoutes = [
  member.view({
    name: 'showEndGrant',
    path: '/clients/:grantId/end',
    permission: 'org.seats.manage',
    show: (visit) => endPage(visit, freshForm()),
  }),

  member.action({
    name: 'endGrant',
    path: '/clients/:grantId/end',
    permission: 'org.seats.manage',
    stepUp: true,
    form: z.object({}),
    async act(visit) {
      const grantId = visit.params.grantId ?? '';
      await endGrant(visit.console.em, { organizationId: visit.organization.organizationId, grantId, by: visit.by });
      return redirect(visit.at(`/clients/${grantId}`), { flash: 'The access is ended.' });
    },
    redraw: endPage,
  }),
];

async function endPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const client = await getClient(visit.console.em, visit.organization.organizationId, visit.params.grantId ?? '');
  const here = visit.at(`/clients/${client.grantId}`);
  return page({
    title: 'End a client’s access',
    breadcrumbs: clientBreadcrumbs(visit, client),
    body: form(visit, {
      action: `${here}/end`,
      state,
      button: 'End the access',
      kind: 'danger',
      fields: html`
        <p>The work of ${displayName(client.professional)} for ${displayName(client.family)} ends from this moment on. It cannot be taken back: the family would have to give access anew.</p>
        <ul>
          ${seatThatEnds(client)}
          <li>Your webhooks are sent <code>client.ended</code> with the reason <code>ended</code>${client.seatId === null ? '' : html`, and <code>seat.ended</code>`}.</li>
        </ul>
        ${overNotice(client)}`,
      secondary: html`<a href="${here}">Back</a>`,
    }),
  });
}

/** Pages above those that change one access. */
export const clientBreadcrumbs = (visit: MemberVisit, { grantId, family }: ClientDetails): Page['breadcrumbs'] => [
  [truncate(family, 80), visit.at(`/clients/${grantId}`)],
  ...clientsBreadcrumbs(visit),
];

export const seatThatEnds = ({ seatId }: ClientDetails): Html =>
  seatId === null
    ? html`<li>It carries no seat.</li>`
    : html`<li><strong>Its seat ends with it</strong>, and the place is free at once.</li>`;

/** Said where somebody was quicker. */
export const overNotice = ({ status }: ClientDetails): Html =>
  status === 'ended' ? notice('info', 'This access has ended already.') : nothing;
