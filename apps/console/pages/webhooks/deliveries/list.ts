import { z } from 'zod';
import { listWebhooks } from '#domain/webhooks/list.ts';
import {
  type DeliveryRef,
  type FoundDeliveries,
  searchDeliveries,
  searchOrganizationDeliveries,
  searchScanLimit,
} from '#domain/webhooks/search-deliveries.ts';
import { type Child, type Html, html, nothing } from '#runtime/pages/html.ts';
import { autoRefresh } from '../../../components/auto-refresh.ts';
import { emptyState } from '../../../components/empty-state.ts';
import { hiddenField } from '../../../components/form.ts';
import { linkButton } from '../../../components/link.ts';
import { filterQuery, isFiltered } from '../../../components/list-filter.ts';
import { notice } from '../../../components/notice.ts';
import { pager } from '../../../components/pager.ts';
import { page } from '../../../web/response.ts';
import { member } from '../../../web/route.ts';
import type { MemberVisit } from '../../../web/visit.ts';
import { deliveriesTable, isSelectable, refreshSeconds, selectionForm, selectShown } from '../delivery-cells.ts';
import { getWebhookHead, webhookBreadcrumbs, webhookPath, webhookRequest } from '../find-webhook.ts';
import { temporalNotice } from '../temporal.ts';
import { webhookTabs } from '../webhook-tabs.ts';
import { deliveryFilterForm, type FilterQuery, filterFields, readFilter } from './filter.ts';

const perPage = 25;
const permission = 'org.webhooks.manage';
const nothingFound: FoundDeliveries<never> = { deliveries: [], older: null, hasStopped: false };

/** Lists deliveries, newest first: of one webhook, and of all webhooks of an organization. */
export const listRoutes = [
  member.view({
    name: 'listDeliveries',
    path: '/webhooks/:webhookId/deliveries',
    permission,
    query: z.object({ ...filterFields, before: z.guid().nullable().catch(null) }),
    async show(visit, { before, ...query }) {
      const webhook = await getWebhookHead(visit);
      const found = await searchOfWebhook(visit, query, before);
      return page({
        title: 'Deliveries',
        breadcrumbs: webhookBreadcrumbs(visit, webhook),
        body: html`
          ${webhookTabs(visit, 'deliveries')}
          ${temporalNotice(visit)}
          ${deliveryFilterForm(webhookPath(visit, '/deliveries'), query)}
          ${renderList(visit, {
            query,
            found,
            before,
            path: webhookPath(visit, '/deliveries'),
            webhookId: webhook.id,
            more:
              webhook.managedBy === null
                ? linkButton(webhookPath(visit, '/redeliver'), 'Redeliver many…', 'secondary')
                : null,
          })}`,
      });
    },
  }),

  member.view({
    name: 'listAllDeliveries',
    path: '/deliveries',
    permission,
    query: z.object({
      ...filterFields,
      webhook: z.union([z.guid(), z.literal('')]).catch(''),
      before: z
        .string()
        .regex(/^[0-9a-f-]{36}\.[0-9a-f-]{36}$/)
        .nullable()
        .catch(null),
    }),
    async show(visit, { before, ...query }) {
      const webhooks = await listWebhooks(visit.console.database, visit.request);
      const found = await searchAll(visit, query, before);
      return page({
        title: 'Deliveries',
        body: html`
          ${temporalNotice(visit)}
          ${deliveryFilterForm(visit.at('/deliveries'), query, webhooks)}
          ${renderList(visit, { query, found, before, path: visit.at('/deliveries'), webhookId: null, more: null })}`,
      });
    },
  }),
];

async function searchOfWebhook(
  visit: MemberVisit,
  query: FilterQuery,
  before: string | null,
): Promise<FoundDeliveries> {
  const filter = readFilter(query);
  if (filter === null) return nothingFound;
  return searchDeliveries(visit.console.database, webhookRequest(visit), filter, { before, atMost: perPage });
}

/** Finds a page of the deliveries of one or all webhooks. A cursor is `<event>.<webhook>`. */
async function searchAll(
  visit: MemberVisit,
  query: FilterQuery & { webhook: string },
  cursor: string | null,
): Promise<FoundDeliveries> {
  const filter = readFilter(query);
  if (filter === null) return nothingFound;
  const page = {
    before: cursor === null ? null : parseCursor(cursor),
    atMost: perPage,
    webhookId: query.webhook || null,
  };
  const { older, ...found } = await searchOrganizationDeliveries(visit.console.database, visit.request, filter, page);
  return { ...found, older: older === null ? null : `${older.eventId}.${older.webhookId}` };
}

function parseCursor(cursor: string): DeliveryRef {
  const [eventId = '', webhookId = ''] = cursor.split('.');
  return { eventId, webhookId };
}

/** A page of a list. `webhookId` null: it is across webhooks. `more` is a further button. */
interface List {
  query: FilterQuery & Record<string, string>;
  found: FoundDeliveries;
  before: string | null;
  path: string;
  webhookId: string | null;
  more: Child;
}

function renderList(visit: MemberVisit, list: List): Html {
  const { query, found, before, path, webhookId } = list;
  return html`
    ${autoRefresh({
      id: 'deliveries',
      href: visit.target,
      everySeconds: refreshSeconds(found.deliveries),
      // Older pages stay as they are.
      shown: before === null ? selectShown(found.deliveries) : null,
      body:
        found.deliveries.length === 0
          ? emptyList(visit, list)
          : deliveriesTable(visit, found.deliveries, { canSelect: true, hasWebhook: webhookId === null }),
    })}
    ${pager({
      isFirst: before === null,
      older: found.older,
      href: (cursor) => path + filterQuery(query, { before: cursor }),
    })}
    ${redeliverActions(visit, list)}`;
}

function redeliverActions(visit: MemberVisit, { found, webhookId, more }: List): Html {
  const canSelect = found.deliveries.some(isSelectable);
  if (!canSelect && more === null) return nothing;
  return html`<form id="${selectionForm}" method="get" action="${visit.at('/deliveries/redeliver')}">
    ${webhookId === null ? nothing : hiddenField('webhook', webhookId)}
    <p class="actions">${
      canSelect ? html`<button type="submit" class="secondary outline">Redeliver selected…</button>` : nothing
    }
      ${more}</p>
  </form>`;
}

function emptyList(visit: MemberVisit, { query, found, before, path, webhookId }: List): Html {
  if (found.hasStopped)
    return notice(
      'info',
      `No matches in ${searchScanLimit.toLocaleString('en')} deliveries. Select “Older” to search further, or narrow ` +
        'the time range.',
    );
  if (isFiltered(query) || before !== null)
    return emptyState({
      title: 'No matching deliveries',
      body: html`Change or clear the filter.`,
      action: linkButton(path, 'View all', 'secondary'),
    });
  if (webhookId === null)
    return emptyState({
      icon: 'deliveries',
      title: 'No deliveries yet',
      body: html`The deliveries of all webhooks appear here within seconds of an event.`,
      action: linkButton(visit.at('/webhooks'), 'View webhooks'),
    });
  return emptyState({
    title: 'No deliveries yet',
    body: html`New events appear here within seconds. Send a test event to check that the receiver is ready.`,
    action: linkButton(webhookPath(visit, '/test'), 'Send test event'),
  });
}
