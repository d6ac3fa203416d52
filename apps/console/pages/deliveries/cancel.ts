import { z } from 'zod';
import { cancelDelivery } from '#domain/webhooks/cancel-delivery.ts';
import { getDeliveryDetail } from '#domain/webhooks/delivery-detail.ts';
import { copyableId } from '../../components/copy.ts';
import { form } from '../../components/form.ts';
import { deliveryStatus } from '../../components/status.ts';
import { detailList } from '../../components/table.ts';
import { exactTime } from '../../components/time.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { WorkflowsAway } from '../../workflows.ts';
import { breadcrumbsOf, getHead, of, webhookRequest } from '../webhooks/find-webhook.ts';
import { deliveryPath, describeDelivery } from './cells.ts';

/** Cancels one delivery, after a confirmation page. */
export const cancelRoutes = [
  member.view({
    name: 'showCancelDelivery',
    path: '/webhooks/:webhookId/deliveries/:eventId/cancel',
    permission: 'org.webhooks.manage',
    show: (visit) => cancelPage(visit, freshForm()),
  }),

  member.action({
    name: 'cancelDelivery',
    path: '/webhooks/:webhookId/deliveries/:eventId/cancel',
    permission: 'org.webhooks.manage',
    stepUp: true,
    form: z.object({}),
    async act(visit) {
      const { em, workflows } = visit.console;
      const { organizationId, webhookId, by } = webhookRequest(visit);
      const eventId = visit.params.eventId ?? '';
      const { round, started } = await cancelDelivery(em, { organizationId, webhookId, by, eventId });
      if (started && workflows.isConfigured)
        await workflows.cancelDelivery({ organizationId, webhookId, eventId }, round).catch(ignoreAway);
      return redirect(deliveryPath(visit, eventId), { flash: 'Delivery cancelled.' });
    },
    redraw: cancelPage,
  }),
];

/** Ignores that a workflow could not be notified: it ends at its next attempt, which is refused. */
function ignoreAway(error: unknown): void {
  if (!(error instanceof WorkflowsAway)) throw error;
}

async function cancelPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const webhook = await getHead(visit);
  const eventId = visit.params.eventId ?? '';
  const delivery = await getDeliveryDetail(
    visit.console.em,
    { ...webhookRequest(visit), eventId },
    { before: null, atMost: 1 },
  );
  const isOpen = delivery.state === 'waiting' || delivery.state === 'parked';
  return page({
    title: isOpen ? `Cancel delivery of ${delivery.type}?` : 'Delivery already finished',
    breadcrumbs: [
      [delivery.type, deliveryPath(visit, eventId)],
      ['Deliveries', of(visit, '/deliveries')],
      ...breadcrumbsOf(visit, webhook),
    ],
    body: html`
      ${detailList([
        ['Event', html`${delivery.type} ${copyableId('event ID', eventId)}`],
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
              action: `${deliveryPath(visit, eventId)}/cancel`,
              state,
              button: 'Cancel delivery',
              kind: 'danger',
              secondary: html`<a href="${deliveryPath(visit, eventId)}">Keep delivery</a>`,
            })}`
          : html`<p><a href="${deliveryPath(visit, eventId)}">View delivery</a></p>`
      }`,
  });
}
