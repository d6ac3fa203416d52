import { z } from 'zod';
import { type DeliveryDetail, getDeliveryDetail } from '#domain/webhooks/delivery-detail.ts';
import { redeliverOne } from '#domain/webhooks/redeliver.ts';
import { buttonForm } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { live } from '../../components/live.ts';
import { notice } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { copyable } from '../../components/secret.ts';
import { deliveryStatus } from '../../components/status.ts';
import { detailList } from '../../components/table.ts';
import { exactTime } from '../../components/time.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { WorkflowsAway } from '../../workflows.ts';
import { breadcrumbsOf, getHead, of, webhookRequest } from '../webhooks/find-webhook.ts';
import { temporalNotice } from '../webhooks/temporal.ts';
import { attemptList } from './attempts.ts';
import { deliveryPath, nowInWords, refreshSeconds } from './cells.ts';

const attemptsPerPage = 20;

/** One delivery, as it goes on. */
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
      const { em, workflows } = visit.console;
      const delivery = { ...webhookRequest(visit), eventId: visit.params.eventId ?? '' };
      const options = { canRetryNow: workflows.isConfigured, onlyOpen: how === 'retry' };
      const sent = await redeliverOne(em, delivery, options);
      const flash =
        sent.how === 'queued'
          ? 'It is sent again: see the next attempt below.'
          : await hurry(visit, sent.eventId, sent.round);
      return redirect(deliveryPath(visit, sent.eventId), { flash });
    },
    redraw: (visit, state) => deliveryPage(visit, state, null),
  }),
];

/**
 * Tells the delivery's workflow. It is due on record by now, so when nobody can be told, the
 * workers see to it by themselves.
 */
async function hurry({ console, ...visit }: MemberVisit, eventId: string, round: number): Promise<string> {
  const { organizationId, webhookId } = webhookRequest({ console, ...visit });
  try {
    const isTold = await console.workflows.retryNow({ organizationId, webhookId, eventId }, round);
    return isTold ? 'The next attempt is made now.' : 'The next attempt is made within two minutes.';
  } catch (error) {
    if (!(error instanceof WorkflowsAway)) throw error;
    return 'It is due now, but what sends events does not answer: the attempt is made within two minutes of its return.';
  }
}

async function deliveryPage(visit: MemberVisit, state: FormState, before: number | null): Promise<Page> {
  const webhook = await getHead(visit);
  const request = { ...webhookRequest(visit), eventId: visit.params.eventId ?? '' };
  const delivery = await getDeliveryDetail(visit.console.em, request, { before, atMost: attemptsPerPage });
  const everySeconds = before === null ? refreshSeconds([delivery]) : null;
  const here = deliveryPath(visit, delivery.eventId);
  return page({
    title: delivery.type,
    breadcrumbs: [['Deliveries', of(visit, '/deliveries')], ...breadcrumbsOf(visit, webhook)],
    body: html`
      ${temporalNotice(visit)}
      ${state.problem === null ? nothing : notice('bad', state.problem)}
      ${live({
        id: 'delivery',
        href: here,
        moves: everySeconds !== null,
        everySeconds: everySeconds ?? 0,
        body: html`${detailsOf(delivery)}
          ${actions(visit, delivery, webhook.state)}
          <section aria-labelledby="attempts"><h2 id="attempts">Attempts</h2>${attemptList(visit, delivery)}</section>`,
      })}
      ${pager({
        // Attempts are numbered without a gap, so the page before this one is known.
        newer: before === null ? null : String(Math.min(before + attemptsPerPage, 999_999)),
        older: delivery.olderAttempts === null ? null : String(delivery.olderAttempts),
        href: (cursor) => `${here}?before=${cursor}`,
        ...(before === null ? {} : { firstHref: here }),
      })}
      <section aria-labelledby="body"><h2 id="body">Body</h2>
        <p>These bytes are sent with every attempt; the signature is of them.</p>
        ${copyable('the body', delivery.body, { multiline: true })}</section>`,
  });
}

const detailsOf = (delivery: DeliveryDetail): Html =>
  detailList([
    ['State', deliveryStatus(delivery)],
    ['Now', nowInWords(delivery)],
    ['Happened', exactTime(delivery.createdAt)],
    ['Event id', html`<code>${delivery.eventId}</code>`],
    ['Number in the webhook’s count', delivery.sequence === null ? 'none yet' : String(delivery.sequence)],
    ['Attempts', String(delivery.attempts)],
    delivery.round > 1 && ['Round', `${delivery.round}: each time it was sent again began a new one`],
  ]);

/** What can be done with a delivery, by its state and its webhook's. */
function actions(visit: MemberVisit, { state, eventId, isAttempting }: DeliveryDetail, webhookState: string): Html {
  const here = deliveryPath(visit, eventId);
  const isActive = webhookState === 'active';
  const send = (how: 'retry' | 'redeliver', button: string) =>
    buttonForm(visit, { action: here, button, values: { how }, id: `${how}-now` });
  const cancel = html`<a id="cancel" class="button secondary outline" role="button" href="${here}/cancel">Cancel…</a>`;
  if (state === 'waiting')
    return html`<div class="actions">${isActive && !isAttempting ? send('retry', 'Retry now') : nothing}${cancel}</div>`;
  if (state === 'parked')
    return html`<div class="actions">${linkButton(of(visit, '/resume'), 'Resume the webhook…')}${cancel}</div>`;
  if (state === 'cancelled' || webhookState === 'deleted') return nothing;
  return isActive
    ? html`<div class="actions">${send('redeliver', 'Redeliver')}</div>`
    : html`<p>It can be sent again once the webhook is <a href="${of(visit, '/resume')}">resumed</a>.</p>`;
}
