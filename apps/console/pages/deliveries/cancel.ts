import { z } from 'zod';
import { cancelDelivery } from '#domain/webhooks/cancel-delivery.ts';
import { getDeliveryDetail } from '#domain/webhooks/delivery-detail.ts';
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
import { deliveryPath, nowInWords } from './cells.ts';

/** Giving up one delivery, after a look at it. */
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
        await workflows.cancelDelivery({ organizationId, webhookId, eventId }, round).catch(endsByItself);
      return redirect(deliveryPath(visit, eventId), { flash: 'The delivery is cancelled, and not tried again.' });
    },
    redraw: cancelPage,
  }),
];

/** A workflow that is not told ends at its next attempt, which is not admitted. */
function endsByItself(error: unknown): void {
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
    title: isOpen ? 'Cancel the delivery?' : 'It is settled already',
    breadcrumbs: [
      [delivery.type, deliveryPath(visit, eventId)],
      ['Deliveries', of(visit, '/deliveries')],
      ...breadcrumbsOf(visit, webhook),
    ],
    body: html`
      ${detailList([
        ['Event', html`${delivery.type} <code>${eventId}</code>`],
        ['Happened', exactTime(delivery.createdAt)],
        ['State', deliveryStatus(delivery)],
        ['Now', nowInWords(delivery)],
      ])}
      ${
        isOpen
          ? html`<p>It is given up for good: it is not tried again, and cannot be sent again later. Other deliveries of the webhook go on.</p>
            ${delivery.isAttempting ? html`<p>An attempt is under way and is not called back: the receiver may still get this one.</p>` : nothing}
            ${form(visit, {
              action: `${deliveryPath(visit, eventId)}/cancel`,
              state,
              button: 'Cancel it for good',
              kind: 'danger',
              secondary: html`<a href="${deliveryPath(visit, eventId)}">Let it go on</a>`,
            })}`
          : html`<p><a href="${deliveryPath(visit, eventId)}">Back to the delivery</a></p>`
      }`,
  });
}
