import { z } from 'zod';
import { type FoundDeliveries, searchDeliveries, searchLooksAt } from '#domain/webhooks/search-deliveries.ts';
import { emptyState } from '../../components/empty-state.ts';
import { linkButton } from '../../components/link.ts';
import { live } from '../../components/live.ts';
import { notice } from '../../components/notice.ts';
import { pager } from '../../components/pager.ts';
import { page } from '../../web/answer.ts';
import { type Html, html } from '../../web/html.ts';
import { member } from '../../web/route.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { breadcrumbsOf, getHead, of, webhookRequest } from '../webhooks/find-webhook.ts';
import { temporalNotice } from '../webhooks/temporal.ts';
import { deliveriesTable, refreshSeconds } from './cells.ts';
import { type FilterQuery, filterFields, filterForm, isFiltered, queryOf, readFilter } from './filter.ts';

const perPage = 25;

/** A webhook's deliveries, newest first. */
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
          ${temporalNotice(visit)}
          ${filterForm(visit, query)}
          ${live({
            id: 'deliveries',
            href: visit.target,
            moves: everySeconds !== null,
            everySeconds: everySeconds ?? 0,
            body:
              found.deliveries.length === 0
                ? none(visit, query, found, before)
                : deliveriesTable(visit, found.deliveries),
          })}
          ${pager({
            newer: null,
            older: found.older,
            href: (cursor) => of(visit, `/deliveries${queryOf(query, { before: cursor })}`),
            ...(before === null ? {} : { firstHref: of(visit, `/deliveries${queryOf(query)}`) }),
          })}
          <p class="actions">${linkButton(of(visit, '/redeliver'), 'Send many again', 'secondary')}</p>`,
      });
    },
  }),
];

function none(visit: MemberVisit, query: FilterQuery, { hasStopped }: FoundDeliveries, before: string | null): Html {
  if (query.event !== '' && readFilter(query) === null)
    return notice(
      'info',
      'That is no event id. It looks like 3b1f8a52-9c0e-4d57-8a41-6f0f2f1c7e10, and is the id in the event’s body and in its header webhook-id.',
    );
  if (hasStopped)
    return notice(
      'info',
      `None of the ${searchLooksAt.toLocaleString('en')} deliveries looked at matches. “Older” goes on looking; a narrower time is quicker.`,
    );
  if (isFiltered(query) || before !== null)
    return emptyState({
      title: 'No delivery matches',
      body: html`<p>Ask for less, or for another time.</p>`,
      action: html`<a href="${of(visit, '/deliveries')}">Show everything</a>`,
    });
  return emptyState({
    title: 'Nothing was sent yet',
    body: html`<p>Each event that the webhook is to be told of becomes a delivery here, with every attempt. A test event shows whether the receiver is ready.</p>`,
    action: linkButton(of(visit, '/test'), 'Send a test event'),
  });
}
