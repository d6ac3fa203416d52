import { describeCause } from '#domain/webhooks/causes.ts';
import { listRecentFailures, type RecentFailure } from '#domain/webhooks/organization-health.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { attemptStatus, deliveryStatus } from '../../components/status.ts';
import { table } from '../../components/table.ts';
import { relativeTime } from '../../components/time.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { webhookName } from '../webhooks/cells.ts';

const maxShown = 5;

/** Lists the deliveries that failed last, each with its cause. */
export async function recentFailures(visit: MemberVisit): Promise<Html> {
  if (!visit.may('org.webhooks.manage')) return nothing;
  const failures = await listRecentFailures(visit.console.database, visit.request, maxShown);
  if (failures.length === 0) return nothing;
  return html`<section aria-labelledby="failures"><h2 id="failures">Recent failures</h2>
    ${table<RecentFailure>({
      caption: 'Deliveries whose last attempt failed',
      rows: failures,
      columns: [
        {
          heading: 'Event',
          main: true,
          cell: ({ webhookId, eventId, type }) =>
            html`<a href="${visit.at(`/webhooks/${webhookId}/deliveries/${eventId}`)}">${type}</a>`,
        },
        {
          heading: 'Status',
          whenNarrow: 'beside',
          cell: (failure) => deliveryStatus({ ...failure, isAttempting: false }),
        },
        {
          heading: 'Webhook',
          cell: (failure) => html`<a href="${visit.at(`/webhooks/${failure.webhookId}`)}">${webhookName(failure)}</a>`,
        },
        { heading: 'Response', cell: (failure) => attemptStatus({ ...failure, finishedAt: failure.at }) },
        { heading: 'Cause', cell: ({ explanation, cause }) => explanation ?? describeCause(cause) },
        { heading: 'Attempted', cell: ({ at }) => relativeTime(at) },
      ],
    })}</section>`;
}
