import { describeCause } from '#domain/webhooks/causes.ts';
import type { FoundDelivery, ListedDelivery } from '#domain/webhooks/search-deliveries.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { copyableId } from '../../components/copy.ts';
import { deliveryStatus } from '../../components/status.ts';
import { type Column, table } from '../../components/table.ts';
import { exactTime, time } from '../../components/time.ts';
import type { Page } from '../../web/response.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { webhookName } from './cells.ts';
import { canChange, type NamedWebhook, webhookBreadcrumbs, webhookPath, webhookRequest } from './find-webhook.ts';

/** Returns the path of a delivery's page, below the webhook of this page. */
export const deliveryPath = (visit: MemberVisit, eventId: string): string =>
  webhookPath(visit, `/deliveries/${eventId}`);

/** Returns the domain request for the delivery in a page's path. */
export const deliveryRequest = (visit: MemberVisit) => ({
  ...webhookRequest(visit),
  eventId: visit.params.eventId ?? '',
});

export const deliveriesBreadcrumbs = (visit: MemberVisit, webhook: NamedWebhook): Page['breadcrumbs'] => [
  ['Deliveries', webhookPath(visit, '/deliveries')],
  ...webhookBreadcrumbs(visit, webhook),
];

/** The form that the checkboxes of a list belong to. */
export const selectionForm = 'redeliver-selected';

/** Renders a checkbox that selects a delivery. It stays checked when the list updates. */
function selectBox(delivery: ListedDelivery): Html {
  const { webhookId, eventId, type } = delivery;
  if (!isSelectable(delivery)) return nothing;
  return html`<input type="checkbox" id="select-${webhookId}-${eventId}" name="delivery" value="${webhookId}.${eventId}"
    form="${selectionForm}" aria-label="Select ${type} ${eventId}" autocomplete="off">`;
}

/** Returns whether a delivery can be sent again: not cancelled, of a webhook managed here. */
export const isSelectable = ({ state, webhookState, managedBy }: ListedDelivery): boolean =>
  state !== 'cancelled' && canChange({ state: webhookState, managedBy });

/**
 * Returns a table of deliveries, newest first. `canSelect`: with the checkboxes of `selectionForm`;
 * `hasWebhook`: with the webhook of each.
 */
export function deliveriesTable(
  visit: MemberVisit,
  deliveries: readonly ListedDelivery[],
  { canSelect = false, hasWebhook = false } = {},
): Html {
  const getWebhookPath = (webhookId: string) => visit.at(`/webhooks/${webhookId}`);
  const columns: (Column<ListedDelivery> | false)[] = [
    {
      heading: 'Event',
      main: true,
      cell: ({ webhookId, eventId, type }) =>
        html`<a id="d-${webhookId}-${eventId}" href="${getWebhookPath(webhookId)}/deliveries/${eventId}">${type}</a>
          <br>${copyableId('event ID', eventId)}`,
    },
    { heading: 'Status', whenNarrow: 'beside', cell: deliveryStatus },
    hasWebhook && {
      heading: 'Webhook',
      whenNarrow: 'start',
      cell: (delivery) => html`<a href="${getWebhookPath(delivery.webhookId)}">${webhookName(delivery)}</a>
        ${delivery.webhookState === 'deleted' ? html`<span class="quiet">(deleted)</span>` : nothing}`,
    },
    { heading: 'Occurred', whenNarrow: hasWebhook ? 'plain' : undefined, cell: ({ createdAt }) => time(createdAt) },
    { heading: 'Attempts', numeric: true, whenNarrow: 'hidden', cell: ({ attempts }) => String(attempts) },
    { heading: 'Details', whenNarrow: 'plain', cell: describeDelivery },
    canSelect && { heading: 'Select', whenNarrow: 'before', cell: selectBox },
  ];
  return table<ListedDelivery>({
    caption: 'Deliveries',
    rows: deliveries,
    columns: columns.filter((column) => column !== false),
  });
}

/**
 * Returns when a delivery settled, or when its next attempt is due. The server computes the delay,
 * so that a viewer's wrong clock has no effect.
 */
export function describeDelivery(delivery: FoundDelivery): Html {
  const { state, settledAt, isAttempting, isBlocked, attempts, dueInMs, nextAttemptAt } = delivery;
  // `attempts` have ended.
  if (isAttempting) return html`Attempt ${attempts + 1} in progress`;
  switch (state) {
    case 'waiting': {
      const failed = lastFailure(delivery);
      if (isBlocked) return html`Waiting for an earlier event of the same client or seat`;
      if ((dueInMs ?? 0) === 0) return html`${failed}${attempts === 0 ? 'Due now' : 'Next attempt due now'}`;
      return html`${failed}Next attempt ${formatDelay(dueInMs ?? 0)} (${exactTime(nextAttemptAt)})`;
    }
    case 'held':
      return html`Held until you resume the webhook`;
    case 'delivered':
      return html`Finished ${exactTime(settledAt)}`;
    default:
      return html`Finished ${exactTime(settledAt)}${
        delivery.lastCause === null ? '' : html`. ${lastAttempt(delivery)}`
      }`;
  }
}

/** Describes the failure before the next attempt; a delivered event that is sent again did not fail. */
const lastFailure = (delivery: FoundDelivery): Html | string =>
  delivery.attempts === 0 || delivery.lastCause === 'accepted' ? '' : html`${lastAttempt(delivery)}. `;

const lastAttempt = ({ lastStatus, lastCause }: FoundDelivery): Html =>
  html`Last attempt: ${lastStatus ?? describeCause(lastCause)}`;

const units = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** Returns a time ahead in its two largest units: `in 4 min 12 s`. */
function formatDelay(ms: number): string {
  let left = Math.ceil(ms / 1_000);
  const parts: string[] = [];
  for (const [unit, size] of units) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
    if (parts.length === 2 || (parts.length === 1 && count === 0)) break;
  }
  return parts.length === 0 ? 'now' : `in ${parts.join(' ')}`;
}

/**
 * Returns the seconds after which a page of these deliveries requests itself again. A page of
 * settled deliveries does so too, because new deliveries arrive.
 */
export const refreshSeconds = (deliveries: readonly FoundDelivery[]): number =>
  deliveries.some(({ isAttempting, dueInMs }) => isAttempting || (dueInMs !== null && dueInMs < 60_000)) ? 2 : 5;

/**
 * Returns what pages show of deliveries, for the version of their refreshing part. A delay changes the
 * version every 10 seconds within the last minute, and every minute before.
 */
export const selectShown = <Delivery extends FoundDelivery>(deliveries: readonly Delivery[]): unknown =>
  deliveries.map(({ dueInMs, ...delivery }) => ({
    ...delivery,
    due: dueInMs === null ? null : Math.ceil(dueInMs / (dueInMs < 60_000 ? 10_000 : 60_000)),
  }));
