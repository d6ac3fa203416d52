import { z } from 'zod';
import { endGrant } from '#domain/clients/end-access.ts';
import { type ClientDetails, getClient } from '#domain/clients/list-clients.ts';
import { form } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { displayName, truncate } from '../../components/text.ts';
import type { FormState } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { clientsBreadcrumbs } from './cells.ts';

/** Ends a client's access to a professional. */
export const endRoutes = member.formPage({
  pageName: 'showEndGrant',
  name: 'endGrant',
  path: '/clients/:grantId/end',
  permission: 'org.seats.manage',
  stepUp: true,
  form: z.object({}),
  async act(visit) {
    const grantId = visit.params.grantId ?? '';
    await endGrant(visit.console.database, { ...visit.request, grantId });
    return redirect(visit.at(`/clients/${grantId}`), { flash: 'Access ended.' });
  },
  render: endPage,
});

async function endPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const client = await getClient(visit.console.database, visit.organizationId, visit.params.grantId ?? '');
  const here = visit.at(`/clients/${client.grantId}`);
  return page({
    title: `End access of ${truncate(client.family, 60)}?`,
    breadcrumbs: clientBreadcrumbs(visit, client),
    body: form(visit, {
      state,
      button: `End access of ${truncate(client.family, 60)}`,
      kind: 'danger',
      fields: html`
        <p>The access of ${displayName(client.professional)} to ${displayName(client.family)} ends now. You
          can’t undo this. Only the client can give access again.</p>
        <ul>
          ${seatImpact(client)}
          <li>Your webhooks receive <code>client.ended</code> with the reason <code>ended</code>${
            client.seatId === null ? '' : html`, and <code>seat.ended</code>`
          }.</li>
        </ul>
        ${endedNotice(client)}`,
      cancel: here,
    }),
  });
}

/** Returns the breadcrumbs of the pages that change one access. */
export const clientBreadcrumbs = (visit: MemberVisit, { grantId, family }: ClientDetails): Page['breadcrumbs'] => [
  [truncate(family, 80), visit.at(`/clients/${grantId}`)],
  ...clientsBreadcrumbs(visit),
];

export const seatImpact = ({ seatId }: ClientDetails): Html =>
  seatId === null
    ? html`<li>No seat is affected.</li>`
    : html`<li><strong>The client’s seat also ends</strong> and becomes available.</li>`;

/** States that the access has already ended, for example because another member ended it. */
export const endedNotice = ({ status }: ClientDetails): Html =>
  status === 'ended' ? notice('info', 'This access has already ended.') : nothing;
