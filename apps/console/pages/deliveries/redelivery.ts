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
import { selectionInWords } from './redelivery-cells.ts';

/** One redelivery of many, as it goes on, and stopping it. */
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
      const { em, workflows } = visit.console;
      const { organizationId } = visit.organization;
      const asked = await cancelRedelivery(em, { organizationId, redeliveryId: id, by: visit.by });
      if (asked.finishedAt === null && workflows.isConfigured)
        await workflows.cancelRedelivery(id).catch(stopsByItself);
      return redirect(of(visit, `/redeliveries/${id}`));
    },
    redraw: redeliveryPage,
  }),
];

/** One whose workflow is not told stops before its next page. */
function stopsByItself(error: unknown): void {
  if (!(error instanceof WorkflowsAway)) throw error;
}

/** The redelivery that the address names, of the webhook that it names. */
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
    title: 'Sending many again',
    breadcrumbs: [
      ['Send many again', of(visit, '/redeliver')],
      ['Deliveries', of(visit, '/deliveries')],
      ...breadcrumbsOf(visit, webhook),
    ],
    body: html`
      ${state.problem === null ? nothing : notice('bad', state.problem)}
      ${live({
        id: 'redelivery',
        href: here,
        everySeconds: 2,
        moves,
        body: html`${sentenceOf(visit, redelivery)}
          ${detailsOf(redelivery)}
          ${moves && redelivery.cancelRequestedAt === null ? html`<div class="actions">${buttonForm(visit, { action: here, button: 'Stop it', id: 'stop' })}</div>` : nothing}`,
      })}
      <p><a href="${of(visit, '/deliveries')}">See the deliveries</a></p>`,
  });
}

const detailsOf = (redelivery: RedeliveryRow): Html =>
  detailList([
    ['What', selectionInWords(redelivery)],
    ['State', redeliveryStatus(redelivery)],
    ['Looked at', redelivery.seen.toLocaleString('en')],
    ['Sent again', redelivery.queued.toLocaleString('en')],
    ['Were being tried, and are tried now', redelivery.retriesRequested.toLocaleString('en')],
    ['Asked for', exactTime(redelivery.requestedAt)],
    redelivery.finishedAt !== null && ['Ended', exactTime(redelivery.finishedAt)],
  ]);

/** How it stands, in a sentence. */
function sentenceOf(visit: MemberVisit, { state, endReason, cancelRequestedAt }: RedeliveryRow): Html {
  switch (state) {
    case 'requested':
      return notice('info', 'It is about to begin. It is on record, so it goes on by itself, also when nobody looks.');
    case 'running':
      return cancelRequestedAt === null
        ? notice('info', 'It goes on by itself, also when nobody looks.')
        : notice('info', 'It stops before its next deliveries.');
    case 'done':
      return notice('good', 'All of it was sent again.');
    case 'cancelled':
      return notice('info', 'It was stopped. What it had sent again by then stays so.');
    default:
      return endReason === 'webhook_parked'
        ? notice(
            'warning',
            html`It ended early, because its webhook was parked. <a href="${of(visit, '/resume')}">Resume that</a>, which sends all that waits, and ask again for the rest.`,
          )
        : notice('warning', 'It ended early, because its webhook was deleted.');
  }
}
