import { webhooksPerOrganization } from '#domain/webhooks/limits.ts';
import { listWebhooks } from '#domain/webhooks/list.ts';
import { pageCounts, type WebhookSummary } from '#domain/webhooks/summary.ts';
import { html } from '#runtime/pages/html.ts';
import { copyableUrl } from '../../components/copy.ts';
import { emptyState } from '../../components/empty-state.ts';
import { linkButton } from '../../components/link.ts';
import { webhookStatus } from '../../components/status.ts';
import { type Column, table } from '../../components/table.ts';
import { relativeTime } from '../../components/time.ts';
import { page } from '../../web/response.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { describeDay, typeList, webhookName } from './cells.ts';
import { temporalNotice } from './temporal.ts';

export const listRoutes = [
  member.view({
    name: 'listWebhooks',
    path: '/webhooks',
    permission: 'org.webhooks.manage',
    async show(visit) {
      const { database, now } = visit.console;
      const webhooks = await listWebhooks(database, visit.request, pageCounts(now()));
      const add = linkButton(visit.at('/webhooks/new'), 'Add webhook');
      if (webhooks.length === 0)
        return page({
          title: 'Webhooks',
          body: html`${temporalNotice(visit)}${emptyState({
            icon: 'webhooks',
            title: 'No webhooks yet',
            body: html`A webhook sends a signed event to your system within seconds when a client starts or ends, or
              when a seat is assigned or ended. Failed deliveries are retried for 72 hours.`,
            action: add,
          })}`,
        });
      return page({
        title: 'Webhooks',
        actions: add,
        body: html`${temporalNotice(visit)}
          ${table({ caption: 'Webhooks', columns: columns(visit), rows: webhooks })}
          <p class="quiet">${webhooks.length} of ${webhooksPerOrganization} webhooks.</p>`,
      });
    },
  }),
];

const columns = (visit: MemberVisit): Column<WebhookSummary>[] => [
  {
    heading: 'Webhook',
    main: true,
    cell: (webhook) =>
      html`<a href="${visit.at(`/webhooks/${webhook.id}`)}">${webhookName(webhook)}</a>
        <span class="quiet regular">Webhook ${webhook.number}</span><br>${copyableUrl('endpoint URL', webhook.url)}`,
  },
  { heading: 'Status', whenNarrow: 'beside', cell: webhookStatus },
  { heading: 'Failing since', whenNarrow: 'hidden', cell: ({ failingSince }) => relativeTime(failingSince) },
  { heading: 'Last 24 hours', cell: ({ day }) => describeDay(day) },
  { heading: 'Events', whenNarrow: 'hidden', cell: ({ eventTypes }) => typeList(eventTypes) },
];
