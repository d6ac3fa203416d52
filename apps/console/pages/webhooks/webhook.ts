import { z } from 'zod';
import { describeCause } from '#domain/webhooks/causes.ts';
import { maxConcurrency } from '#domain/webhooks/limits.ts';
import { listRecentFailures } from '#domain/webhooks/organization-health.ts';
import { holdsDeliveries } from '#domain/webhooks/status.ts';
import type { WebhookSummary } from '#domain/webhooks/summary.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { chips } from '../../components/chips.ts';
import { copyableId, copyableUrl } from '../../components/copy.ts';
import { foreignText } from '../../components/foreign-text.ts';
import { linkButton } from '../../components/link.ts';
import { statusNotice } from '../../components/notice.ts';
import { attemptStatus, webhookStatus } from '../../components/status.ts';
import { detailList } from '../../components/table.ts';
import { relativeTime, time } from '../../components/time.ts';
import { page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { failingNotice, signatureNotice, typeList } from './cells.ts';
import { canChange, getWebhook, webhookPath, webhookRequest, webhookTitle } from './find-webhook.ts';
import { healthRanges, healthTab } from './health-tab.ts';
import { secretsTable } from './secrets.ts';
import { temporalNotice } from './temporal.ts';
import { webhookTabs } from './webhook-tabs.ts';

type Webhook = Awaited<ReturnType<typeof getWebhook>>;

/** Shows one webhook in tabs: its health first, then its signatures and its settings. */
export const webhookRoutes = [
  member.view({
    name: 'showWebhook',
    path: '/webhooks/:webhookId',
    permission: 'org.webhooks.manage',
    query: z.object({
      tab: z.enum(['health', 'signatures', 'settings']).catch('health'),
      health: z.enum(healthRanges).catch('24h'),
    }),
    async show(visit, { tab, health }) {
      const webhook = await getWebhook(visit);
      const state = await warnings(visit, webhook);
      const bodies = {
        health: () => healthTab(visit, webhook, health, html`${state}${signatureWarning(webhook)}`),
        signatures: () => html`${state}${signatures(visit, webhook)}`,
        settings: () => html`${state}${settings(visit, webhook)}`,
      };
      return page({
        title: webhookTitle(webhook),
        breadcrumbs: [['Webhooks', visit.at('/webhooks')]],
        // The first tab has it where it stays up to date.
        badge: tab === 'health' ? null : webhookStatus(webhook),
        actions: canChange(webhook) ? actions(visit, webhook) : null,
        body: html`
          ${temporalNotice(visit)}
          ${managerNotice(webhook)}
          ${webhookTabs(visit, tab)}
          ${await bodies[tab]()}`,
      });
    },
  }),
];

/** States which Kubernetes object manages the webhook, and that it is read-only here. */
function managerNotice({ managedBy }: WebhookSummary): Html {
  if (managedBy === null) return nothing;
  return statusNotice(
    'info',
    html`Managed by <bdi>${managedBy}</bdi> in Kubernetes. You can view it here, and change it there.`,
  );
}

async function warnings(visit: MemberVisit, webhook: WebhookSummary): Promise<Html> {
  const { state, suspendedReason, failingSince, retryAfterUntil, concurrency } = webhook;
  const link = (path: string, label: string) =>
    canChange(webhook) ? html`<a href="${webhookPath(visit, path)}">${label}</a>` : nothing;
  const [resume, edit] = [link('/resume', 'Resume webhook'), link('/edit', 'Edit webhook')];
  const afterRepair = (next: Html) =>
    next === nothing
      ? 'New events are held until it is resumed.'
      : html`${edit}, or repair the receiver. Then ${next}: new events are held until you do, and sent afterwards.`;
  if (state === 'deleted') return statusNotice('info', 'This webhook is deleted. Its delivery history is kept.');
  if (state === 'paused') return statusNotice('warning', html`Paused. New events are held until you resume. ${resume}`);
  if (suspendedReason === 'failures')
    return statusNotice(
      'bad',
      html`Suspended, because the receiver accepted no events for days. ${await renderCause(visit)}
        ${afterRepair(resume)}`,
    );
  if (suspendedReason === 'gone')
    return statusNotice(
      'bad',
      html`Suspended, because the receiver answered 410 Gone: it wants no more events at this URL.
        ${afterRepair(resume)}`,
    );
  if (retryAfterUntil !== null)
    return statusNotice(
      'warning',
      html`Nothing is sent until ${time(retryAfterUntil)} (${relativeTime(retryAfterUntil)}), because the
        receiver asked for it with Retry-After. Then one delivery goes first, and the others follow once it is
        accepted.`,
    );
  if (failingSince !== null)
    return statusNotice(
      'bad',
      html`${failingNotice(webhook)}
        ${await renderCause(visit)}
        ${edit === nothing ? 'Repair the receiver.' : html`${edit}, or repair the receiver.`}
        Waiting deliveries then go out by themselves.
        ${
          visit.console.sendsMail
            ? html`After an hour, members who manage webhooks get
              <a href="${visit.at('/notifications')}">an email</a>.`
            : nothing
        }
        If it accepts none for days, the webhook is suspended.`,
    );
  if (concurrency === maxConcurrency) return nothing;
  const atOnce = concurrency === 1 ? 'one delivery' : `${concurrency} deliveries`;
  return statusNotice(
    'info',
    `Sending at most ${atOnce} at a time. The limit doubles, up to ten, after each event that the receiver accepts ` +
      'within a second.',
  );
}

/** States why the last attempt that failed did, with a link to its delivery. */
async function renderCause(visit: MemberVisit): Promise<Html> {
  const [failure] = await listRecentFailures(visit.console.database, webhookRequest(visit), 1);
  if (failure === undefined) return nothing;
  const { eventId, explanation, cause } = failure;
  return html`<strong>Last failure:</strong> ${attemptStatus({ ...failure, finishedAt: failure.at })}
    ${explanation ?? describeCause(cause)}
    <a href="${webhookPath(visit, `/deliveries/${eventId}`)}">View delivery</a>.`;
}

/** Warns of a receiver that failed its last signature check. */
const signatureWarning = (webhook: Webhook): Html =>
  webhook.signatureResult === null || webhook.signatureResult === 'verified' ? nothing : signatureNotice(webhook);

function actions(visit: MemberVisit, { state }: WebhookSummary): Html {
  const [path, label] = holdsDeliveries(state) ? ['/resume', 'Resume…'] : ['/pause', 'Pause…'];
  return html`${linkButton(webhookPath(visit, path), label, 'secondary')}
    ${linkButton(webhookPath(visit, '/test'), 'Send test event')}`;
}

const headerNames = ({ headerNames: names }: Webhook): Html =>
  names.length === 0 ? html`None` : chips(names, names.length);

const settings = (visit: MemberVisit, webhook: Webhook): Html => html`
  ${detailList([
    ['Endpoint URL', copyableUrl('endpoint URL', webhook.url)],
    ['Events', typeList(webhook.eventTypes)],
    ['Order', webhook.ordered ? 'The events of each client and each seat, in order' : 'Any order'],
    ['Requests per second', webhook.postsPerSecond === null ? 'No limit' : `At most ${webhook.postsPerSecond}`],
    ['Custom headers', headerNames(webhook)],
    ['Description', webhook.description.trim() === '' ? '–' : foreignText(webhook.description)],
    webhook.number !== null && ['Name in emails', `Webhook ${webhook.number}`],
    ['Webhook ID', copyableId('webhook ID', webhook.id)],
    ['Created', time(webhook.createdAt)],
  ])}
  ${
    canChange(webhook)
      ? html`<p class="actions">${linkButton(webhookPath(visit, '/edit'), 'Edit webhook')}
          ${linkButton(webhookPath(visit, '/headers'), 'Edit custom headers', 'secondary')}
          ${linkButton(webhookPath(visit, '/delete'), 'Delete webhook…', 'secondary')}</p>`
      : nothing
  }`;

function signatures(visit: MemberVisit, webhook: Webhook): Html {
  if (webhook.state === 'deleted') return html`<p>The signing secrets were deleted with the webhook.</p>`;
  const change = html`<p class="actions">${linkButton(webhookPath(visit, '/verify'), 'Check signature verification')}
    ${linkButton(webhookPath(visit, '/rotate'), 'Rotate secret…', 'secondary')}</p>`;
  return html`${signatureNotice(webhook)}
    ${secretsTable(webhook.secrets, visit.console.now())}
    ${canChange(webhook) ? change : nothing}`;
}
