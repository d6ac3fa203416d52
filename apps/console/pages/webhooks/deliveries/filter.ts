import { z } from 'zod';
import { type EventType, eventTypes } from '#domain/contract/events.ts';
import type { DeliveryFilter } from '#domain/webhooks/search-deliveries.ts';
import { deliveryStatuses, selectionOfStatus } from '#domain/webhooks/status.ts';
import type { WebhookHead } from '#domain/webhooks/summary.ts';
import type { Html } from '#runtime/pages/html.ts';
import { filterForm, formatQueryName, timeRangeFields } from '../../../components/list-filter.ts';
import { parseDateTime } from '../../../web/date-time.ts';
import { webhookTitle } from '../find-webhook.ts';

/** The filters in the query of the list of deliveries; empty: not set. */
export const filterFields = {
  status: z.enum(['', ...deliveryStatuses.map(formatQueryName)]).catch(''),
  type: z.enum(['', ...eventTypes]).catch(''),
  event: z.string().trim().max(100).catch(''),
  ...timeRangeFields,
};

export type FilterQuery = z.output<z.ZodObject<typeof filterFields>>;

/** Returns the filter of a query; null when its event ID is not a UUID. */
export function readFilter({ status, type, event, from, until, zone }: FilterQuery): DeliveryFilter | null {
  const eventId = event.toLowerCase();
  if (event !== '' && !z.guid().safeParse(eventId).success) return null;
  const wanted = deliveryStatuses.find((each) => formatQueryName(each) === status);
  return {
    ...(wanted === undefined ? { state: null, progress: null } : selectionOfStatus[wanted]),
    type: (type || null) as EventType | null,
    eventId: eventId || null,
    from: parseDateTime(from, zone, 'from'),
    to: parseDateTime(until, zone, 'until'),
  };
}

/** Renders the filter of a list of deliveries. `webhooks` are the choices across webhooks. */
export function deliveryFilterForm(
  action: string,
  query: FilterQuery & Record<string, string>,
  webhooks: readonly Pick<WebhookHead, 'id' | 'description' | 'url'>[] | null = null,
): Html {
  const any = { value: '', label: 'Any' };
  const statuses = deliveryStatuses.map((label) => ({ value: formatQueryName(label), label }));
  const types = eventTypes.map((value) => ({ value, label: value }));
  const choices = webhooks?.map((webhook) => ({ value: webhook.id, label: webhookTitle(webhook) })) ?? [];
  return filterForm({
    action,
    query,
    problems: readFilter(query) === null ? { event: badEventId } : {},
    fields: [
      ...(webhooks === null ? [] : [{ name: 'webhook', label: 'Webhook', options: [any, ...choices] }]),
      { name: 'status', label: 'Status', options: [any, ...statuses] },
      { name: 'type', label: 'Event type', options: [any, ...types] },
      { name: 'event', label: 'Event ID', maxLength: 100, exact: true },
    ],
  });
}

const badEventId =
  'Enter a valid event ID, for example 3b1f8a52-9c0e-4d57-8a41-6f0f2f1c7e10. You find it in the ' +
  'event’s body and in its webhook-id header.';
