import type { RedeliveryRow } from '#domain/webhooks/redeliveries.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { formatCount } from '../../../components/text.ts';
import { time } from '../../../components/time.ts';

/** Returns which events a redelivery sends. */
export const describeSelection = ({ failedSince, from, to }: RedeliveryRow): Html =>
  failedSince === null ? html`Events from ${time(from)} to ${time(to)}` : html`Failed since ${time(failedSince)}`;

/** Returns how many events a redelivery has sent, of those scanned. */
export function describeProgress({ seen, queued }: RedeliveryRow): Html {
  return html`${queued.toLocaleString('en')} of ${seen.toLocaleString('en')} scanned`;
}

/** Returns a number of events in words: `1 event`, `2,400 events`. */
export const eventCount = (events: number): string => formatCount(events, 'event', 'events');
