import { z } from 'zod';
import { redeliverableDays } from '#domain/webhooks/limits.ts';
import { listRedeliveries, type RedeliveryRow } from '#domain/webhooks/redeliveries.ts';
import { holdsDeliveries } from '#domain/webhooks/status.ts';
import type { WebhookHead } from '#domain/webhooks/summary.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { hiddenField, problemNotice, selectField, textField } from '../../../components/form.ts';
import { queryString, renderTimeZone } from '../../../components/list-filter.ts';
import { notice } from '../../../components/notice.ts';
import { pager } from '../../../components/pager.ts';
import { redeliveryStatus } from '../../../components/status.ts';
import { table } from '../../../components/table.ts';
import { time } from '../../../components/time.ts';
import { type FormState, freshForm, getText } from '../../../web/form.ts';
import { type Page, page } from '../../../web/response.ts';
import { member } from '../../../web/route.ts';
import type { MemberVisit } from '../../../web/visit.ts';
import { deliveriesBreadcrumbs } from '../delivery-cells.ts';
import { getWebhookHead, webhookPath, webhookRequest } from '../find-webhook.ts';
import { temporalNotice } from '../temporal.ts';
import { failedSince } from './redeliver-form.ts';
import { describeProgress, describeSelection } from './redelivery-cells.ts';

const perPage = 20;

/** Offers to redeliver failed events or a time range, and lists past redeliveries. */
export const redeliverRoutes = [
  member.view({
    name: 'showRedeliver',
    path: '/webhooks/:webhookId/redeliver',
    permission: 'org.webhooks.manage',
    query: z.object({ before: z.guid().nullable().catch(null) }),
    show: (visit, { before }) => redeliverPage(visit, freshForm({ what: 'failed', hours: '24' }), before),
  }),
];

/** Renders the page. `state` is that of a rejected form. */
export async function redeliverPage(visit: MemberVisit, state: FormState, before: string | null = null): Promise<Page> {
  const webhook = await getWebhookHead(visit);
  const found = await listRedeliveries(visit.console.database, {
    ...webhookRequest(visit),
    atMost: perPage + 1,
    before,
  });
  const redeliveries = found.slice(0, perPage);
  const running = before === null ? redeliveries.find(({ finishedAt }) => finishedAt === null) : undefined;
  return page({
    title: 'Redeliver events',
    breadcrumbs: deliveriesBreadcrumbs(visit, webhook),
    body: html`
      ${temporalNotice(visit)}
      ${obstacle(visit, webhook, running) ?? renderForms(visit, state)}
      <section aria-labelledby="before"><h2 id="before">Past redeliveries</h2>
        ${redeliveries.length === 0 ? html`<p>No redeliveries yet.</p>` : redeliveriesTable(visit, redeliveries)}
        ${pager({
          isFirst: before === null,
          older: found.length > perPage ? (redeliveries.at(-1)?.id ?? null) : null,
          href: (cursor) => webhookPath(visit, `/redeliver${queryString({ before: cursor })}`),
        })}</section>`,
  });
}

/** Returns why a redelivery cannot start now; null when it can. */
function obstacle(
  visit: MemberVisit,
  { state }: Pick<WebhookHead, 'state'>,
  running: RedeliveryRow | undefined,
): Html | null {
  if (state === 'deleted') return notice('info', 'This webhook is deleted. No events are sent to it.');
  if (holdsDeliveries(state)) {
    const resume = html`<a href="${webhookPath(visit, '/resume')}">Resume webhook</a>`;
    return notice('warning', html`This webhook is ${state}. ${resume} first, which sends held deliveries.`);
  }
  if (running === undefined) return null;
  const link = html`<a href="${webhookPath(visit, `/redeliveries/${running.id}`)}">View redelivery</a>`;
  return notice('info', html`A redelivery is in progress. Only one can run at a time. ${link}`);
}

function renderForms(visit: MemberVisit, state: FormState): Html {
  // Typed values and problems belong to the form that was sent.
  const getFormState = (what: 'failed' | 'range') =>
    getText(state, 'what') === what ? state : freshForm({ hours: '24' });
  const [failed, range] = [getFormState('failed'), getFormState('range')];
  const failedFields = html`${hiddenField('what', 'failed')}
    ${selectField(failed, {
      name: 'hours',
      label: 'Failed in',
      options: failedSince,
      hint: 'Includes deliveries that are being retried.',
    })}`;
  const rangeFields = html`${hiddenField('what', 'range')}
    ${textField(range, {
      name: 'from',
      label: 'From',
      type: 'datetime-local',
      hint: 'Includes events that were delivered.',
    })}
    ${textField(range, { name: 'until', label: 'To', type: 'datetime-local' })}
    <p>${renderTimeZone({
      from: getText(range, 'from'),
      until: getText(range, 'until'),
      zone: getText(range, 'zone'),
    })}</p>`;
  return html`
    <p>Events keep their IDs, so a receiver that ignores duplicates processes each event once. You can redeliver events
      of the last ${redeliverableDays} days. Cancelled deliveries are not sent. The next page shows how many events are
      sent and asks you to confirm.</p>
    <div class="two">
      <section aria-labelledby="failed"><h2 id="failed">Failed deliveries</h2>
        ${reviewForm(visit, failed, 'Redeliver failed events…', failedFields)}</section>
      <section aria-labelledby="range"><h2 id="range">Time range</h2>
        ${reviewForm(visit, range, 'Redeliver time range…', rangeFields)}</section>
    </div>`;
}

/** Renders a form that leads to the review. It changes nothing, so it is a GET form. */
const reviewForm = (visit: MemberVisit, state: FormState, button: string, fields: Html): Html =>
  html`<form method="get" action="${webhookPath(visit, '/redeliver/review')}">
    ${problemNotice(state)}
    ${fields}
    <p class="actions"><button type="submit">${button}</button></p>
  </form>`;

function redeliveriesTable(visit: MemberVisit, redeliveries: readonly RedeliveryRow[]): Html {
  return table<RedeliveryRow>({
    caption: 'Past redeliveries',
    rows: redeliveries,
    columns: [
      {
        heading: 'Events',
        main: true,
        cell: (one) => html`<a href="${webhookPath(visit, `/redeliveries/${one.id}`)}">${describeSelection(one)}</a>`,
      },
      { heading: 'Requested', cell: ({ requestedAt }) => time(requestedAt) },
      { heading: 'Status', whenNarrow: 'beside', cell: redeliveryStatus },
      { heading: 'Redelivered', cell: describeProgress },
      { heading: 'Finished', cell: ({ finishedAt }) => time(finishedAt) },
    ],
  });
}
