import { z } from 'zod';
import { type EventType, eventTypes } from '#domain/contract/events.ts';
import { type DeliveryState, deliveryStates } from '#domain/webhooks/deliveries.ts';
import type { DeliveryFilter } from '#domain/webhooks/search-deliveries.ts';
import { selectField, textField } from '../../components/form.ts';
import { filterForm, timeRangeFields } from '../../components/list-filter.ts';
import { deliveryStateLabel } from '../../components/status.ts';
import { parseDateTime } from '../../web/date-time.ts';
import { type Html, html } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { of } from '../webhooks/find-webhook.ts';

/** The filters in the query of the list of deliveries; empty: not set. */
export const filterFields = {
  state: z.enum(['', ...deliveryStates]).catch(''),
  type: z.enum(['', ...eventTypes]).catch(''),
  event: z.string().trim().max(100).catch(''),
  ...timeRangeFields,
};

export type FilterQuery = z.output<z.ZodObject<typeof filterFields>>;

/** Returns the filter that a query asks for; null when its event ID is not a UUID. */
export function readFilter({ state, type, event, from, until, zone }: FilterQuery): DeliveryFilter | null {
  const eventId = event.toLowerCase();
  if (event !== '' && !z.uuid().safeParse(eventId).success) return null;
  return {
    state: (state || null) as DeliveryState | null,
    type: (type || null) as EventType | null,
    eventId: eventId || null,
    from: parseDateTime(from, zone),
    to: parseDateTime(until, zone),
  };
}

/** Draws the filter of the list of deliveries. */
export function deliveryFilterForm(visit: MemberVisit, query: FilterQuery): Html {
  const any = { value: '', label: 'Any' };
  const optional = { required: false };
  const states = deliveryStates.map((value) => ({ value, label: deliveryStateLabel(value) }));
  const types = eventTypes.map((value) => ({ value, label: value }));
  return filterForm({
    action: of(visit, '/deliveries'),
    query,
    fields: (state) => html`
      ${selectField(state, { ...optional, name: 'state', label: 'Status', options: [any, ...states] })}
      ${selectField(state, { ...optional, name: 'type', label: 'Event type', options: [any, ...types] })}
      ${textField(state, { ...optional, name: 'event', label: 'Event ID', maxLength: 100, exact: true })}`,
  });
}
