import { z } from 'zod';
import {
  cancelRedelivery,
  findRedelivery,
  noSuchRedelivery,
  type RedeliveryRow,
} from '#domain/webhooks/redeliveries.ts';
import { buttonForm } from '../../components/form.ts';
import { live } from '../../components/live.ts';
import { notice } from '../../components/notice.ts';
import { redeliveryStatus } from '../../components/status.ts';
import { detailList } from '../../components/table.ts';
import { exactTime } from '../../components/time.ts';
import { type Page, page, redirect } from '../../web/answer.ts';
import { type FormState, freshForm } from '../../web/form.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { WorkflowsAway } from '../../workflows.ts';
import { breadcrumbsOf, getHead, of } from '../webhooks/find-webhook.ts';
import { describeSelection } from './redelivery-cells.ts';

/** Shows one redelivery and stops it. */
export const redeliveryRoutes = [
  member.view({
    name: 'showRedelivery',
    path: '/webhooks/:webhookId/redeliveries/:redeliveryId',
    permission: 'org.webhooks.manage',
    show: (visit) => redeliveryPage(visit, freshForm()),
    watch: getRedelivery,
  }),

  member.action({
    name: 'cancelRedelivery',
    path: '/webhooks/:webhookId/redeliveries/:redeliveryId',
    permission: 'org.webhooks.manage',
    form: z.object({}),
    async act(visit) {
      const { id } = await getRedelivery(visit);
      const { em, workflows } = visit.console;
      const { organizationId } = visit.organization;
      const asked = await cancelRedelivery(em, { organizationId, redeliveryId: id, by: visit.by });
      if (asked.finishedAt === null && workflows.isConfigured) await workflows.cancelRedelivery(id).catch(ignoreAway);
      return redirect(of(visit, `/redeliveries/${id}`));
    },
    redraw: redeliveryPage,
  }),
];

/** Ignores that a workflow could not be notified: it stops before its next batch. */
function ignoreAway(error: unknown): void {
  if (!(error instanceof WorkflowsAway)) throw error;
}

/** Returns the redelivery in the page's path, if it belongs to the webhook in the path. */
async function getRedelivery(visit: MemberVisit): Promise<RedeliveryRow> {
  const { redeliveryId = '', webhookId } = visit.params;
  const { organizationId } = visit.organization;
  const found = await findRedelivery(visit.console.em, { organizationId, redeliveryId, by: visit.by });
  if (found === null || found.webhookId !== webhookId) throw noSuchRedelivery();
  return found;
}

async function redeliveryPage(visit: MemberVisit, state: FormState): Promise<Page> {
  const redelivery = await getRedelivery(visit);
  const webhook = await getHead(visit);
  const here = of(visit, `/redeliveries/${redelivery.id}`);
  const moves = redelivery.finishedAt === null;
  return page({
    title: 'Redelivery',
    breadcrumbs: [
      ['Redeliver events', of(visit, '/redeliver')],
      ['Deliveries', of(visit, '/deliveries')],
      ...breadcrumbsOf(visit, webhook),
    ],
    body: html`
      ${state.problem === null ? nothing : notice('bad', state.problem)}
      ${live({
        id: 'redelivery',
        href: here,
        everySeconds: 2,
        shown: moves ? redelivery : null,
        body: html`${stateNotice(visit, redelivery)}
          ${detailsOf(redelivery)}
          ${
            moves && redelivery.cancelRequestedAt === null
              ? html`<div class="actions">${buttonForm(visit, {
                  action: here,
                  button: 'Stop redelivery',
                  id: 'stop',
                })}</div>`
              : nothing
          }`,
      })}
      <p><a href="${of(visit, '/deliveries')}">View deliveries</a></p>`,
  });
}

const detailsOf = (redelivery: RedeliveryRow): Html =>
  detailList([
    ['Events', describeSelection(redelivery)],
    ['Status', redeliveryStatus(redelivery)],
    ['Scanned', redelivery.seen.toLocaleString('en')],
    ['Redelivered', redelivery.queued.toLocaleString('en')],
    ['Already retrying', redelivery.retriesRequested.toLocaleString('en')],
    ['Requested', exactTime(redelivery.requestedAt)],
    redelivery.finishedAt !== null && ['Finished', exactTime(redelivery.finishedAt)],
  ]);

/** Returns the state of a redelivery as a notice. */
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
      return endReason === 'webhook_parked'
        ? notice(
            'warning',
            html`Stopped early, because the webhook was paused or suspended.
              <a href="${of(visit, '/resume')}">Resume webhook</a>, then redeliver the remaining events.`,
          )
        : notice('warning', 'Stopped early, because the webhook was deleted.');
  }
}
