import { z } from 'zod';
import { type EventType, eventTypes } from '#domain/contract/events.ts';
import { type DeliveryState, deliveryStates } from '#domain/webhooks/deliveries.ts';
import type { DeliveryFilter } from '#domain/webhooks/search-deliveries.ts';
import { selectField, textField } from '../../components/form.ts';
import { deliveryStateLabel } from '../../components/status.ts';
import { dateTimePattern, parseDateTime, timeZonePattern } from '../../web/date-time.ts';
import { freshForm } from '../../web/form.ts';
import { attributes, type Html, html, nothing } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { of } from '../webhooks/find-webhook.ts';

const given = (form: RegExp) => z.string().regex(form).catch('');

/**
 * What the address of the list may ask for; empty: not asked for. `zone` is the time zone in which
 * `from` and `until` are meant.
 */
export const filterFields = {
  state: z.enum(['', ...deliveryStates]).catch(''),
  type: z.enum(['', ...eventTypes]).catch(''),
  event: z.string().trim().max(100).catch(''),
  from: given(dateTimePattern),
  until: given(dateTimePattern),
  zone: given(timeZonePattern),
};

export type FilterQuery = z.output<z.ZodObject<typeof filterFields>>;

/**
 * The query as deliveries are searched; null when the event's id is none, so that nothing can be
 * found by it.
 */
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

/** Whether anything is asked for. */
export const isFiltered = ({ zone: _, ...asked }: FilterQuery): boolean =>
  Object.values(asked).some((value) => value !== '');

/**
 * The query of a link that asks for the same, with `more` added; nothing when there is nothing to
 * say.
 */
export function queryOf(filter: FilterQuery, more: Record<string, string> = {}): string {
  const { zone, ...asked } = filter;
  const all = { ...asked, ...(asked.from || asked.until ? { zone } : {}), ...more };
  const query = new URLSearchParams(Object.entries(all).filter(([, value]) => value !== '')).toString();
  return query === '' ? '' : `?${query}`;
}

/** The filter, folded away while nothing is asked for. */
export function filterForm(visit: MemberVisit, query: FilterQuery): Html {
  const state = freshForm({ ...query });
  const optional = { required: false };
  const any = { value: '', label: 'Any' };
  return html`<details class="filter"${attributes({ open: isFiltered(query) })}>
    <summary role="button" class="secondary outline">Filter</summary>
    <form method="get" action="${of(visit, '/deliveries')}">
      <div class="filter-fields">
        ${selectField(state, { ...optional, name: 'state', label: 'State', options: [any, ...deliveryStates.map((value) => ({ value, label: deliveryStateLabel(value) }))] })}
        ${selectField(state, { ...optional, name: 'type', label: 'Type', options: [any, ...eventTypes.map((value) => ({ value, label: value }))] })}
        ${textField(state, { ...optional, name: 'event', label: 'Event id', maxLength: 100, exact: true })}
        ${textField(state, { ...optional, name: 'from', label: 'Happened from', type: 'datetime-local' })}
        ${textField(state, { ...optional, name: 'until', label: 'Until', type: 'datetime-local' })}
      </div>
      <input type="hidden" name="zone" value="${query.zone}" data-zone>
      <p class="actions"><button type="submit">Show</button>${isFiltered(query) ? html`<a href="${of(visit, '/deliveries')}">Show everything</a>` : nothing}
        <span class="quiet">Times are in <span data-zone-name>${query.zone || 'UTC'}</span>.</span></p>
    </form>
  </details>`;
}
