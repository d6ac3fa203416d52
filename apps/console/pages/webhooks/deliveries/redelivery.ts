import { z } from 'zod';
import {
  cancelRedelivery,
  findRedelivery,
  noSuchRedelivery,
  type RedeliveryRow,
} from '#domain/webhooks/redeliveries.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { autoRefresh } from '../../../components/auto-refresh.ts';
import { buttonForm, problemNotice } from '../../../components/form.ts';
import { notice } from '../../../components/notice.ts';
import { redeliveryStatus } from '../../../components/status.ts';
import { detailList } from '../../../components/table.ts';
import { exactTime } from '../../../components/time.ts';
import { type FormState, freshForm } from '../../../web/form.ts';
import { type Page, page, redirect } from '../../../web/response.ts';
import { member } from '../../../web/route.ts';
import type { MemberVisit } from '../../../web/visit.ts';
import { deliveriesBreadcrumbs } from '../delivery-cells.ts';
import { getWebhookHead, webhookPath } from '../find-webhook.ts';
import { describeSelection } from './redelivery-cells.ts';

/** Shows one redelivery and stops it. */
export const redeliveryRoutes = [
  member.view({
    name: 'showRedelivery',
    path: '/webhooks/:webhookId/redeliveries/:redeliveryId',
    permission: 'org.webhooks.manage',
    show: (visit) => redeliveryPage(visit, freshForm()),
  }),

  member.action({
    name: 'cancelRedelivery',
    path: '/webhooks/:webhookId/redeliveries/:redeliveryId',
    permission: 'org.webhooks.manage',
    form: z.object({}),
    async act(visit) {
      const { id } = await getRedelivery(visit);
      await cancelRedelivery(visit.console.database, { ...visit.request, redeliveryId: id });
      return redirect(webhookPath(visit, `/redeliveries/${id}`));
    },
    rerender: redeliveryPage,
  }),
];

/** Returns the redelivery in the page's path, if it belongs to the webhook in the path. */
async function getRedelivery(visit: MemberVisit): Promise<RedeliveryRow> {
  const { redeliveryId = '', webhookId } = visit.params;
  const found = await findRedelivery(visit.console.database, { ...visit.request, redeliveryId });
  if (found === null || found.webhookId !== webhookId) throw noSuchRedelivery();
  return found;
}

async function redeliveryPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const redelivery = await getRedelivery(visit);
  const webhook = await getWebhookHead(visit);
  const here = webhookPath(visit, `/redeliveries/${redelivery.id}`);
  const isRunning = redelivery.finishedAt === null;
  return page({
    title: 'Redelivery',
    breadcrumbs: [['Redeliver events', webhookPath(visit, '/redeliver')], ...deliveriesBreadcrumbs(visit, webhook)],
    body: html`
      ${problemNotice(state)}
      ${autoRefresh({
        id: 'redelivery',
        href: here,
        everySeconds: 2,
        shown: isRunning ? redelivery : null,
        body: html`${stateNotice(visit, redelivery)}
          ${renderDetails(redelivery)}
          ${
            isRunning && redelivery.cancelRequestedAt === null
              ? html`<div class="actions">${buttonForm(visit, {
                  action: here,
                  button: 'Stop redelivery',
                  id: 'stop',
                })}</div>`
              : nothing
          }`,
      })}
      <p><a href="${webhookPath(visit, '/deliveries')}">View deliveries</a></p>`,
  });
}

const renderDetails = (redelivery: RedeliveryRow): Html =>
  detailList([
    ['Events', describeSelection(redelivery)],
    ['Status', redeliveryStatus(redelivery)],
    ['Scanned', redelivery.seen.toLocaleString('en')],
    ['Redelivered', redelivery.queued.toLocaleString('en')],
    ['Requested', exactTime(redelivery.requestedAt)],
    redelivery.finishedAt !== null && ['Finished', exactTime(redelivery.finishedAt)],
  ]);

function stateNotice(visit: MemberVisit, { state, endReason, cancelRequestedAt }: RedeliveryRow): Html {
  switch (state) {
    case 'requested':
      return notice('info', 'Pending. This continues in the background.');
    case 'running':
      return cancelRequestedAt === null
        ? notice('info', 'This continues in the background.')
        : notice('info', 'Stopping after the current batch.');
    case 'done':
      return notice('good', 'Redelivery completed.');
    case 'cancelled':
      return notice('info', 'Redelivery stopped. Events that were already sent are not affected.');
    default:
      return endReason === 'webhook_deleted'
        ? notice('warning', 'Stopped early, because the webhook was deleted.')
        : notice(
            'warning',
            html`Stopped early, because the webhook was ${endReason === 'webhook_paused' ? 'paused' : 'suspended'}.
              <a href="${webhookPath(visit, '/resume')}">Resume webhook</a>, then redeliver the remaining events.`,
          );
  }
}
