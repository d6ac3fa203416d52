import { dayMs } from '#domain/contract/durations.ts';
import { describeCause } from '#domain/webhooks/causes.ts';
import { type HealthSpan, healthSpans, listHealth, sumCounts } from '#domain/webhooks/health.ts';
import { findDeliveryRetentionDays } from '#domain/webhooks/retention.ts';
import { type ListedDelivery, searchDeliveries } from '#domain/webhooks/search-deliveries.ts';
import type { WebhookSummary } from '#domain/webhooks/summary.ts';
import { listTestOutcomes } from '#domain/webhooks/test-event.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { autoRefresh } from '../../components/auto-refresh.ts';
import { copyableUrl } from '../../components/copy.ts';
import { healthPlot } from '../../components/health-plot.ts';
import { healthLabels, testEventStatus, webhookStatus } from '../../components/status.ts';
import { detailList, table } from '../../components/table.ts';
import { displayName } from '../../components/text.ts';
import { time } from '../../components/time.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { describeDay, formatOpenCount, typeList } from './cells.ts';
import { deliveriesTable, refreshSeconds, selectShown } from './delivery-cells.ts';
import { canChange, webhookPath, webhookRequest } from './find-webhook.ts';

/** How many deliveries, and how many test events, are shown. */
const maxShown = 5;

/**
 * Renders the first tab of a webhook: its status with `warnings`, chart, latest deliveries and
 * latest test events. They stay up to date together, so that none contradicts another.
 */
export async function healthTab(
  visit: MemberVisit,
  webhook: WebhookSummary,
  span: HealthSpan,
  warnings: Html,
): Promise<Html> {
  const deliveries = await listLatest(visit);
  const { state, failingSince, retryAfterUntil, concurrency, day, waiting, held } = webhook;
  return autoRefresh({
    id: 'webhook',
    href: visit.target,
    everySeconds: refreshSeconds(deliveries),
    shown: [selectShown(deliveries), state, failingSince, retryAfterUntil, concurrency, day, waiting, held],
    body: html`${warnings}${renderSummary(visit, webhook)}
      ${await health(visit, span)}
      ${latestDeliveries(visit, webhook, deliveries)}
      ${await latestTests(visit)}`,
  });
}

const renderSummary = (visit: MemberVisit, webhook: WebhookSummary): Html =>
  detailList([
    ['Status', webhookStatus(webhook)],
    ['Endpoint URL', copyableUrl('endpoint URL', webhook.url)],
    ['Last 24 hours', html`${describeDay(webhook.day)}${redeliverFailed(visit, webhook)}`],
    ['Events', typeList(webhook.eventTypes)],
    webhook.waiting > 0 && ['Unfinished', formatOpenCount(webhook.waiting)],
    webhook.held > 0 && [healthLabels.held, formatOpenCount(webhook.held)],
  ]);

/** Failed events are not sent again by themselves, also after a repair. */
const redeliverFailed = (visit: MemberVisit, webhook: WebhookSummary): Html =>
  webhook.day.failed > 0 && webhook.state === 'active' && canChange(webhook)
    ? html` <a href="${webhookPath(visit, '/redeliver')}">Redeliver failed events…</a>`
    : nothing;

async function health(visit: MemberVisit, span: HealthSpan): Promise<Html> {
  const { database, now } = visit.console;
  const buckets = await listHealth(database, webhookRequest(visit), span, now());
  const isEmpty = buckets.every((bucket) => sumCounts(bucket) === 0);
  const link = (to: HealthSpan) => {
    const mark = to === span ? html` aria-current="true"` : nothing;
    const href = webhookPath(visit, to === '24h' ? '' : `?health=${to}`);
    return html`<a href="${href}"${mark}>${healthSpans[to].label}</a> `;
  };
  return html`<section aria-labelledby="health"><h2 id="health">Health</h2>
    <nav class="spans" aria-label="Time range">${healthRanges.map(link)}</nav>
    ${isEmpty ? html`<p>No events in this time range.</p>` : healthPlot(buckets, span)}
    ${await retentionNote(visit, span)}</section>`;
}

/** The ranges of the chart, the shortest first. */
export const healthRanges = Object.keys(healthSpans) as [HealthSpan, ...HealthSpan[]];

/** States that a range longer than the retention period lacks deleted deliveries. */
async function retentionNote({ console }: MemberVisit, span: HealthSpan): Promise<Html> {
  const { count, lengthMs } = healthSpans[span];
  const days = await findDeliveryRetentionDays(console.database);
  if (days === null || count * lengthMs <= days * dayMs) return nothing;
  const text = `Deliveries are deleted ${days} days after they finish. Older bars don’t include them.`;
  return html`<p class="quiet">${text}</p>`;
}

async function listLatest(visit: MemberVisit): Promise<ListedDelivery[]> {
  const all = { state: null, progress: null, type: null, eventId: null, from: null, to: null };
  const page = { before: null, atMost: maxShown };
  return (await searchDeliveries(visit.console.database, webhookRequest(visit), all, page)).deliveries;
}

function latestDeliveries(visit: MemberVisit, webhook: WebhookSummary, deliveries: readonly ListedDelivery[]): Html {
  const none = html`<p>No deliveries yet. New events appear here within seconds.</p>`;
  return html`<section aria-labelledby="latest"><h2 id="latest">Latest deliveries</h2>
    ${deliveries.length === 0 ? none : deliveriesTable(visit, deliveries)}
    <p class="actions"><a href="${webhookPath(visit, '/deliveries')}">View all deliveries</a>
      ${canChange(webhook) ? html`<a href="${webhookPath(visit, '/redeliver')}">Redeliver…</a>` : nothing}
    </p></section>`;
}

/** Renders the latest test events, which are not among the deliveries. */
async function latestTests(visit: MemberVisit): Promise<Html> {
  const tests = await listTestOutcomes(visit.console.database, webhookRequest(visit), maxShown);
  if (tests.length === 0) return nothing;
  return html`<section aria-labelledby="tests"><h2 id="tests">Latest test events</h2>
    ${table<(typeof tests)[number]>({
      caption: 'Test events',
      rows: tests,
      columns: [
        { heading: 'Event type', main: true, cell: ({ eventType }) => eventType },
        { heading: 'Result', whenNarrow: 'beside', cell: ({ delivered }) => testEventStatus(delivered) },
        { heading: 'Sent', cell: ({ at }) => time(at) },
        {
          heading: 'Response',
          cell: ({ status, cause }) => (status === null ? describeCause(cause) : String(status)),
        },
        {
          heading: 'Sent by',
          cell: ({ requestedBy }) => (requestedBy === null ? 'Support' : displayName(requestedBy)),
        },
      ],
    })}</section>`;
}
