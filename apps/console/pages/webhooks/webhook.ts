import { z } from 'zod';
import { type HealthSpan, healthSpans, listHealth, totalOf } from '#domain/webhooks/health.ts';
import { searchDeliveries } from '#domain/webhooks/search-deliveries.ts';
import type { WebhookSummary } from '#domain/webhooks/summary.ts';
import { listTestOutcomes } from '#domain/webhooks/test-event.ts';
import { displayName } from '../../components/display-name.ts';
import { foreignText } from '../../components/foreign-text.ts';
import { healthPlot } from '../../components/health-plot.ts';
import { linkButton } from '../../components/link.ts';
import { live } from '../../components/live.ts';
import { notice } from '../../components/notice.ts';
import { testEventStatus, webhookStatus } from '../../components/status.ts';
import { detailList, table } from '../../components/table.ts';
import { relativeTime, time } from '../../components/time.ts';
import { page } from '../../web/answer.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { deliveriesTable, refreshSeconds } from '../deliveries/cells.ts';
import { describeDay, formatOpenCount, signatureNotice, typeList } from './cells.ts';
import { getWebhook, nameOf, of, webhookRequest } from './find-webhook.ts';
import { secretsTable } from './secrets.ts';
import { temporalNotice } from './temporal.ts';

/** How many deliveries, and how many test events, the page of a webhook shows. */
const latest = 5;

/** Shows one webhook: its status, latest deliveries, health and signing secrets. */
export const webhookRoutes = [
  member.view({
    name: 'showWebhook',
    path: '/webhooks/:webhookId',
    permission: 'org.webhooks.manage',
    query: z.object({ health: z.enum(['hours', 'days']).catch('hours') }),
    async show(visit, { health: span }) {
      const webhook = await getWebhook(visit);
      return page({
        title: nameOf(webhook),
        breadcrumbs: [['Webhooks', visit.at('/webhooks')]],
        body: html`
          ${temporalNotice(visit)}
          ${managerNotice(webhook)}
          ${warnings(visit, webhook)}
          ${canChange(webhook) ? actions(visit, webhook) : nothing}
          ${detailsOf(webhook)}
          ${await latestDeliveries(visit, webhook)}
          ${await latestTests(visit)}
          ${await health(visit, span)}
          ${webhook.state === 'deleted' ? nothing : signing(visit, webhook)}`,
      });
    },
  }),
];

const canChange = ({ state, managedBy }: WebhookSummary): boolean => state !== 'deleted' && managedBy === null;

/** Says which cluster object manages the webhook, and that it is read-only here. */
function managerNotice({ managedBy }: WebhookSummary): Html {
  if (managedBy === null) return nothing;
  return notice(
    'info',
    html`Managed by <bdi>${managedBy}</bdi> in Kubernetes. You can view it here, and change it there.`,
  );
}

function warnings(visit: MemberVisit, webhook: WebhookSummary): Html {
  const { state, parkedReason, failingSince, ramp } = webhook;
  const resume = canChange(webhook) ? html`<a href="${of(visit, '/resume')}">Resume webhook</a>` : nothing;
  if (state === 'deleted') return notice('info', 'This webhook is deleted. Its delivery history is kept.');
  if (parkedReason === 'paused')
    return notice('warning', html`Paused. New events are held until you resume. ${resume}`);
  if (parkedReason === 'failing')
    return notice(
      'warning',
      html`Suspended, because the receiver accepted no events for days. New events are held until you resume. Fix the cause of the failed attempts below first. ${resume}`,
    );
  if (failingSince !== null)
    return notice(
      'warning',
      html`All deliveries failing since ${time(failingSince)} (${relativeTime(failingSince)}). Open a delivery below to see the cause and how to fix it. Events are sent one at a time until the receiver accepts one. If it accepts none for days, the webhook is suspended.`,
    );
  return ramp === null
    ? nothing
    : notice(
        'info',
        `Resuming. Sending ${ramp === 1 ? 'one delivery' : `${ramp} deliveries`} at a time, and twice as many after each success.`,
      );
}

function actions(visit: MemberVisit, { state }: WebhookSummary): Html {
  return html`<p class="actions">
    ${linkButton(of(visit, '/test'), 'Send test event')}
    ${linkButton(of(visit, '/edit'), 'Edit webhook', 'secondary')}
    ${state === 'parked' ? linkButton(of(visit, '/resume'), 'Resume…', 'secondary') : linkButton(of(visit, '/pause'), 'Pause…', 'secondary')}
    ${linkButton(of(visit, '/rotate'), 'Rotate secret…', 'secondary')}
    ${linkButton(of(visit, '/delete'), 'Delete…', 'secondary')}</p>`;
}

const detailsOf = (webhook: WebhookSummary): Html =>
  detailList([
    ['Status', webhookStatus(webhook)],
    ['Endpoint URL', html`<bdi class="url">${webhook.url}</bdi>`],
    ['Events', typeList(webhook.eventTypes)],
    webhook.description.trim() !== '' && ['Description', foreignText(webhook.description)],
    ['Created', time(webhook.createdAt)],
    ['Last 24 hours', describeDay(webhook.day)],
    webhook.waiting > 0 && ['Pending', formatOpenCount(webhook.waiting)],
    webhook.parked > 0 && ['Held', formatOpenCount(webhook.parked)],
  ]);

async function latestDeliveries(visit: MemberVisit, webhook: WebhookSummary): Promise<Html> {
  const all = { state: null, type: null, eventId: null, from: null, to: null };
  const { deliveries } = await searchDeliveries(visit.console.em, webhookRequest(visit), all, {
    before: null,
    atMost: latest,
  });
  const everySeconds = refreshSeconds(deliveries);
  return html`<section aria-labelledby="latest"><h2 id="latest">Latest deliveries</h2>
    ${live({
      id: 'deliveries',
      href: visit.target,
      moves: everySeconds !== null,
      everySeconds: everySeconds ?? 0,
      body:
        deliveries.length === 0
          ? html`<p>No deliveries yet. New events appear here within seconds.</p>`
          : deliveriesTable(visit, deliveries),
    })}
    <p class="actions"><a href="${of(visit, '/deliveries')}">View all deliveries</a>${canChange(webhook) ? html`<a href="${of(visit, '/redeliver')}">Redeliver…</a>` : nothing}</p></section>`;
}

/** Draws the latest test events, which are not among the deliveries. */
async function latestTests(visit: MemberVisit): Promise<Html> {
  const tests = await listTestOutcomes(visit.console.em, webhookRequest(visit), latest);
  if (tests.length === 0) return nothing;
  return html`<section aria-labelledby="tests"><h2 id="tests">Latest test events</h2>
    ${table<(typeof tests)[number]>({
      caption: 'Test events',
      rows: tests,
      columns: [
        { heading: 'Event type', main: true, cell: ({ eventType }) => eventType },
        { heading: 'Sent', cell: ({ at }) => time(at) },
        {
          heading: 'Result',
          cell: ({ delivered }) => testEventStatus(delivered),
        },
        {
          heading: 'Response',
          cell: ({ status, cause }) => (status === null ? html`<code>${cause}</code>` : String(status)),
        },
        { heading: 'Sent by', cell: ({ askedBy }) => (askedBy === null ? 'Support' : displayName(askedBy)) },
      ],
    })}</section>`;
}

async function health(visit: MemberVisit, span: HealthSpan): Promise<Html> {
  const { em, now } = visit.console;
  const buckets = await listHealth(em, webhookRequest(visit), span, now());
  const link = (to: HealthSpan, label: string) =>
    html`<a href="${of(visit)}${to === 'hours' ? '' : '?health=days'}"${to === span ? html` aria-current="true"` : nothing}>${label}</a>`;
  return html`<section aria-labelledby="health"><h2 id="health">Health</h2>
    <nav class="spans" aria-label="Time range">${link('hours', `${healthSpans.hours.count} hours`)}${link('days', `${healthSpans.days.count} days`)}</nav>
    ${buckets.every((bucket) => totalOf(bucket) === 0) ? html`<p>No events in this time range.</p>` : healthPlot(buckets, span)}</section>`;
}

const signing = (visit: MemberVisit, webhook: Awaited<ReturnType<typeof getWebhook>>): Html =>
  html`<section aria-labelledby="signing"><h2 id="signing">Signatures</h2>
    ${signatureNotice(webhook)}
    ${canChange(webhook) ? html`<p class="actions">${linkButton(of(visit, '/verify'), 'Check signature verification', 'secondary')}</p>` : nothing}
    ${secretsTable(webhook.secrets, visit.console.now())}</section>`;
