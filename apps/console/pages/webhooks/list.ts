import { webhooksPerOrganization } from '#domain/webhooks/limits.ts';
import { listWebhookOutlooks, type WebhookSummary } from '#domain/webhooks/summary.ts';
import { emptyState } from '../../components/empty-state.ts';
import { linkButton } from '../../components/link.ts';
import { webhookStatus } from '../../components/status.ts';
import { type Column, table } from '../../components/table.ts';
import { relativeTime } from '../../components/time.ts';
import { page } from '../../web/answer.ts';
import { html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { dayInWords, typeList, webhookName } from './cells.ts';
import { temporalNotice } from './temporal.ts';

/** An organization's webhooks. */
export const listRoutes = [
  member.view({
    name: 'listWebhooks',
    path: '/webhooks',
    permission: 'org.webhooks.manage',
    async show(visit) {
      const { em, now } = visit.console;
      const { organizationId } = visit.organization;
      const webhooks = await listWebhookOutlooks(em, { organizationId, by: visit.by }, now());
      const make = linkButton(visit.at('/webhooks/new'), 'Make a webhook');
      if (webhooks.length === 0)
        return page({
          title: 'Webhooks',
          body: html`${temporalNotice(visit)}${emptyState({
            title: 'Nothing is told to your systems yet',
            body: html`<p>A webhook tells a system of yours, within seconds, when a client starts or ends or a seat is given or ended: we post a signed event to an https URL of yours, and go on trying for 72 hours when it does not answer.</p>`,
            action: make,
          })}`,
        });
      return page({
        title: 'Webhooks',
        body: html`${temporalNotice(visit)}<p class="actions">${make}</p>
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
      html`<a href="${visit.at(`/webhooks/${webhook.id}`)}">${webhookName(webhook)}</a><br><span class="quiet url">${webhook.url}</span>`,
  },
  { heading: 'State', cell: webhookStatus },
  { heading: 'Failing since', cell: ({ failingSince }) => relativeTime(failingSince) },
  { heading: 'Last 24 hours', cell: ({ day }) => dayInWords(day) },
  { heading: 'Events', cell: ({ eventTypes }) => typeList(eventTypes) },
];
