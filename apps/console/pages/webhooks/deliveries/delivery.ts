import { z } from 'zod';
import { redeliverOne } from '#delivery/requests.ts';
import { type DeliveryDetail, getDeliveryDetail } from '#domain/webhooks/delivery-detail.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { autoRefresh } from '../../../components/auto-refresh.ts';
import { copyableId } from '../../../components/copy.ts';
import { buttonForm, problemNotice } from '../../../components/form.ts';
import { linkButton } from '../../../components/link.ts';
import { queryString } from '../../../components/list-filter.ts';
import { pager } from '../../../components/pager.ts';
import { copyableJson } from '../../../components/secret.ts';
import { deliveryStatus } from '../../../components/status.ts';
import { detailList } from '../../../components/table.ts';
import { exactTime } from '../../../components/time.ts';
import { type FormState, freshForm } from '../../../web/form.ts';
import { type Page, page, redirect } from '../../../web/response.ts';
import { member } from '../../../web/route.ts';
import type { MemberVisit } from '../../../web/visit.ts';
import {
  deliveriesBreadcrumbs,
  deliveryPath,
  deliveryRequest,
  describeDelivery,
  refreshSeconds,
  selectShown,
} from '../delivery-cells.ts';
import { getWebhookHead, webhookPath } from '../find-webhook.ts';
import { attemptList } from './attempts.ts';

const attemptsPerPage = 20;

/** Shows one delivery and refreshes it while it is open. */
export const deliveryRoutes = [
  member.view({
    name: 'showDelivery',
    path: '/webhooks/:webhookId/deliveries/:eventId',
    permission: 'org.webhooks.manage',
    query: z.object({ before: z.coerce.number().int().min(1).max(999_999).nullable().catch(null) }),
    show: (visit, { before }) => deliveryPage(visit, freshForm(), before),
  }),

  member.action({
    name: 'sendDeliveryAgain',
    path: '/webhooks/:webhookId/deliveries/:eventId',
    permission: 'org.webhooks.manage',
    once: true,
    form: z.object({ how: z.enum(['retry', 'redeliver']) }),
    async act(visit, { how }) {
      const onlyOpen = how === 'retry';
      const sent = await redeliverOne(visit.console.database, deliveryRequest(visit), { onlyOpen });
      const requested = onlyOpen ? 'Retry requested.' : 'Redelivery requested.';
      const flash = sent.how === 'queued' ? requested : 'An attempt is already in progress.';
      return redirect(deliveryPath(visit, sent.eventId), { flash });
    },
    rerender: (visit, state) => deliveryPage(visit, state, null),
  }),
];

const getDelivery = (visit: MemberVisit, before: number | null): Promise<DeliveryDetail> =>
  getDeliveryDetail(visit.console.database, deliveryRequest(visit), { before, atMost: attemptsPerPage });

async function deliveryPage(visit: MemberVisit, state: FormState, before: number | null): Promise<Page> {
  const webhook = await getWebhookHead(visit);
  const delivery = await getDelivery(visit, before);
  const here = deliveryPath(visit, delivery.eventId);
  return page({
    title: delivery.type,
    breadcrumbs: deliveriesBreadcrumbs(visit, webhook),
    body: html`
      ${problemNotice(state)}
      ${autoRefresh({
        id: 'delivery',
        href: here,
        everySeconds: refreshSeconds([delivery]),
        shown: before === null ? selectShown([delivery]) : null,
        body: html`${renderDetails(delivery)}
          ${webhook.managedBy === null ? actions(visit, delivery, webhook.state) : nothing}
          <section aria-labelledby="attempts"><h2 id="attempts">Attempts</h2>${attemptList(visit, delivery)}</section>`,
      })}
      ${pager({
        isFirst: before === null,
        // Attempts are numbered without a gap, so the page before this one is known.
        newer: before === null ? null : String(Math.min(before + attemptsPerPage, 999_999)),
        older: delivery.olderAttempts === null ? null : String(delivery.olderAttempts),
        href: (cursor) => here + queryString({ before: cursor }),
      })}
      <section aria-labelledby="body"><h2 id="body">Request body</h2>
        <p>Every attempt sends the same bytes, and the signature covers them. The JSON is formatted
          for reading. Copy returns the original bytes.</p>
        ${copyableJson('Body of every attempt', delivery.body)}</section>`,
  });
}

const renderDetails = (delivery: DeliveryDetail): Html =>
  detailList([
    ['Status', deliveryStatus(delivery)],
    ['Details', describeDelivery(delivery)],
    ['Occurred', exactTime(delivery.createdAt)],
    ['Event ID', copyableId('event ID', delivery.eventId)],
    ['Sequence number', delivery.sequence === null ? 'Not assigned yet' : String(delivery.sequence)],
    ['Attempts', String(delivery.attempts)],
  ]);

/** Renders the actions that a delivery's state and its webhook's allow. */
function actions(visit: MemberVisit, { state, eventId, isAttempting }: DeliveryDetail, webhookState: string): Html {
  const here = deliveryPath(visit, eventId);
  const isActive = webhookState === 'active';
  const send = (how: 'retry' | 'redeliver', button: string) =>
    buttonForm(visit, { action: here, button, values: { how }, id: `${how}-now` });
  const cancel = html`<a id="cancel" class="button secondary" href="${here}/cancel">Cancel delivery…</a>`;
  if (state === 'waiting')
    return html`<div class="actions">${
      isActive && !isAttempting ? send('retry', 'Retry now') : nothing
    }${cancel}</div>`;
  if (state === 'held')
    return html`<div class="actions">${linkButton(webhookPath(visit, '/resume'), 'Resume webhook…')}${cancel}</div>`;
  if (state === 'cancelled' || webhookState === 'deleted') return nothing;
  return isActive
    ? html`<div class="actions">${send('redeliver', 'Redeliver')}</div>`
    : html`<p>To redeliver, <a href="${webhookPath(visit, '/resume')}">resume the webhook</a> first.</p>`;
}
