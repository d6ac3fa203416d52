import { z } from 'zod';
import { endGrant } from '#domain/clients/end-access.ts';
import { type ClientDetails, getClient } from '#domain/clients/list-clients.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { form } from '../../components/form.ts';
import { notice } from '../../components/notice.ts';
import { displayName, nameFamily, truncate } from '../../components/text.ts';
import { time } from '../../components/time.ts';
import type { FormState } from '../../web/form.ts';
import { type Page, page, redirect } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { clientsBreadcrumbs } from './cells.ts';

/** Ends a client's access to a professional, or withdraws it before it begins. */
export const endRoutes = member.formPage({
  pageName: 'showEndGrant',
  name: 'endGrant',
  path: '/clients/:grantId/end',
  permission: 'org.seats.manage',
  stepUp: true,
  form: z.object({}),
  async act(visit) {
    const grantId = visit.params.grantId ?? '';
    const result = await endGrant(visit.console.database, { ...visit.request, grantId });
    return redirect(visit.at(`/clients/${grantId}`), {
      flash: result === 'withdrawn' ? 'Access withdrawn.' : 'Access ended.',
    });
  },
  render: endPage,
});

async function endPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const client = await getClient(visit.console.database, visit.organizationId, visit.params.grantId ?? '');
  const here = visit.at(`/clients/${client.grantId}`);
  const isScheduled = client.status === 'scheduled';
  const [professional, family] = [truncate(client.professional, 60), nameFamily(truncate(client.family, 60))];
  const what = `${isScheduled ? 'Withdraw' : 'End'} ${professional}’s access to ${family}`;
  return page({
    title: `${what}?`,
    breadcrumbs: clientBreadcrumbs(visit, client),
    body: form(visit, {
      state,
      button: what,
      kind: 'danger',
      fields: html`
        <p>The access of ${displayName(client.professional)} to ${displayName(client.family)}
          ${isScheduled ? html`that begins on ${time(client.since)} is withdrawn` : 'ends now'}. You can’t undo
          this. Only the client can give access again.</p>
        <ul>
          ${seatImpact(client)}
          ${
            isScheduled
              ? nothingSent
              : html`<li>Your webhooks receive <code>client.ended</code> with the reason <code>ended</code>${
                  client.seatId === null ? '' : html`, and <code>seat.ended</code>`
                }.</li>`
          }
        </ul>
        ${endedNotice(client)}`,
      cancel: here,
    }),
  });
}

export const nothingSent = html`<li>Your webhooks receive nothing, because the access has not begun.</li>`;

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
export function endedNotice({ status }: ClientDetails): Html {
  if (status === 'ended') return notice('info', 'This access has already ended.');
  return status === 'withdrawn' ? notice('info', 'This access was withdrawn before it began.') : nothing;
}
