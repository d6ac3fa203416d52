import { z } from 'zod';
import { cancelDelivery } from '#delivery/requests.ts';
import { getDeliveryDetail } from '#domain/webhooks/delivery-detail.ts';
import { html, nothing } from '#runtime/pages/html.ts';
import { copyableId } from '../../../components/copy.ts';
import { form } from '../../../components/form.ts';
import { deliveryStatus } from '../../../components/status.ts';
import { detailList } from '../../../components/table.ts';
import { exactTime } from '../../../components/time.ts';
import type { FormState } from '../../../web/form.ts';
import { type Page, page, redirect } from '../../../web/response.ts';
import { member } from '../../../web/route.ts';
import type { MemberVisit } from '../../../web/visit.ts';
import { deliveriesBreadcrumbs, deliveryPath, deliveryRequest, describeDelivery } from '../delivery-cells.ts';
import { getWebhookHead } from '../find-webhook.ts';

/** Cancels one delivery, after a confirmation page. */
export const cancelRoutes = member.formPage({
  pageName: 'showCancelDelivery',
  name: 'cancelDelivery',
  path: '/webhooks/:webhookId/deliveries/:eventId/cancel',
  permission: 'org.webhooks.manage',
  stepUp: true,
  form: z.object({}),
  async act(visit) {
    const request = deliveryRequest(visit);
    await cancelDelivery(visit.console.database, request);
    return redirect(deliveryPath(visit, request.eventId), { flash: 'Delivery cancelled.' });
  },
  render: cancelPage,
});

async function cancelPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const webhook = await getWebhookHead(visit);
  const delivery = await getDeliveryDetail(visit.console.database, deliveryRequest(visit), { before: null, atMost: 1 });
  const here = deliveryPath(visit, delivery.eventId);
  const isOpen = delivery.state === 'waiting' || delivery.state === 'held';
  return page({
    title: isOpen ? `Cancel delivery of ${delivery.type}?` : 'Delivery already finished',
    breadcrumbs: [[delivery.type, here], ...deliveriesBreadcrumbs(visit, webhook)],
    body: html`
      ${detailList([
        ['Event', html`${delivery.type} ${copyableId('event ID', delivery.eventId)}`],
        ['Occurred', exactTime(delivery.createdAt)],
        ['Status', deliveryStatus(delivery)],
        ['Details', describeDelivery(delivery)],
      ])}
      ${
        isOpen
          ? html`<p>The delivery is not retried, and you can’t redeliver it later. Other deliveries of the
              webhook continue.</p>
            ${
              delivery.isAttempting
                ? html`<p>An attempt is in progress. The receiver may still get this event.</p>`
                : nothing
            }
            ${form(visit, {
              state,
              button: 'Cancel delivery',
              kind: 'danger',
              secondary: html`<a href="${here}">Keep delivery</a>`,
            })}`
          : html`<p><a href="${here}">View delivery</a></p>`
      }`,
  });
}
