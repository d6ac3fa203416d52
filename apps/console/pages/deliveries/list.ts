import { z } from 'zod';
import { type FoundDeliveries, searchDeliveries, searchLooksAt } from '#domain/webhooks/search-deliveries.ts';
import { emptyState } from '../../components/empty-state.ts';
import { hiddenField } from '../../components/form.ts';
import { linkButton } from '../../components/link.ts';
import { filterQuery, isFiltered } from '../../components/list-filter.ts';
import { live } from '../../components/live.ts';
import { notice } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { page } from '../../web/answer.ts';
import { type Html, html, nothing } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { breadcrumbsOf, getHead, of, webhookRequest } from '../webhooks/find-webhook.ts';
import { temporalNotice } from '../webhooks/temporal.ts';
import { webhookTabs } from '../webhooks/webhook-tabs.ts';
import { deliveriesTable, refreshSeconds, selectionForm } from './cells.ts';
import { deliveryFilterForm, type FilterQuery, filterFields, readFilter } from './filter.ts';

const perPage = 25;

/** Lists a webhook's deliveries, newest first. */
export const listRoutes = [
  member.view({
    name: 'listDeliveries',
    path: '/webhooks/:webhookId/deliveries',
    permission: 'org.webhooks.manage',
    query: z.object({ ...filterFields, before: z.uuid().nullable().catch(null) }),
    async show(visit, { before, ...query }) {
      const webhook = await getHead(visit);
      const filter = readFilter(query);
      const nothingFound: FoundDeliveries = { deliveries: [], older: null, hasStopped: false };
      const found =
        filter === null
          ? nothingFound
          : await searchDeliveries(visit.console.em, webhookRequest(visit), filter, { before, atMost: perPage });
      const everySeconds = before === null ? refreshSeconds(found.deliveries) : null;
      return page({
        title: 'Deliveries',
        breadcrumbs: breadcrumbsOf(visit, webhook),
        body: html`
          ${webhookTabs(visit, 'deliveries')}
          ${temporalNotice(visit)}
          ${deliveryFilterForm(visit, query)}
          ${live({
            id: 'deliveries',
            href: visit.target,
            moves: everySeconds !== null,
            everySeconds: everySeconds ?? 0,
            body:
              found.deliveries.length === 0
                ? emptyList(visit, query, found, before)
                : deliveriesTable(visit, found.deliveries, { isSelectable: true }),
          })}
          ${pager({
            newer: null,
            older: found.older,
            href: (cursor) => of(visit, `/deliveries${filterQuery(query, { before: cursor })}`),
            ...(before === null ? {} : { firstHref: of(visit, `/deliveries${filterQuery(query)}`) }),
          })}
          ${webhook.managedBy === null ? redeliverActions(visit, found) : nothing}`,
      });
    },
  }),
];

const redeliverActions = (visit: MemberVisit, { deliveries }: FoundDeliveries): Html =>
  html`<form id="${selectionForm}" method="get" action="${of(visit, '/redeliver/review')}">
    ${hiddenField('what', 'selected')}
    <p class="actions">${deliveries.length === 0 ? nothing : html`<button type="submit" class="secondary outline">Redeliver selected…</button>`}
      ${linkButton(of(visit, '/redeliver'), 'Redeliver many…', 'secondary')}</p>
  </form>`;

function emptyList(
  visit: MemberVisit,
  query: FilterQuery,
  { hasStopped }: FoundDeliveries,
  before: string | null,
): Html {
  if (query.event !== '' && readFilter(query) === null)
    return notice(
      'info',
      'Enter a valid event ID, for example 3b1f8a52-9c0e-4d57-8a41-6f0f2f1c7e10. You find it in the ' +
        'event’s body and in its webhook-id header.',
    );
  if (hasStopped)
    return notice(
      'info',
      `No matches in ${searchLooksAt.toLocaleString('en')} deliveries. Select “Older” to search further, or narrow the time range.`,
    );
  if (isFiltered(query) || before !== null)
    return emptyState({
      title: 'No matching deliveries',
      body: html`<p>Change or clear the filter.</p>`,
      action: html`<a href="${of(visit, '/deliveries')}">View all</a>`,
    });
  return emptyState({
    title: 'No deliveries yet',
    body: html`<p>New events appear here within seconds. Send a test event to check that the receiver is ready.</p>`,
    action: linkButton(of(visit, '/test'), 'Send test event'),
  });
}
