import type { RedeliveryRow } from '#domain/webhooks/redeliveries.ts';
import { time } from '../../components/time.ts';
import { type Html, html } from '../../web/html.ts';

/** What is sent again, in words. */
export const selectionInWords = ({ failedSince, from, to }: RedeliveryRow): Html =>
  failedSince === null
    ? html`events from ${time(from)} to ${time(to)}`
    : html`all that failed since ${time(failedSince)}`;

/** How far it is. */
export function progressInWords({ seen, queued, retriesRequested }: RedeliveryRow): Html {
  const sent = (queued + retriesRequested).toLocaleString('en');
  return html`${sent} of ${seen.toLocaleString('en')} looked at`;
}
