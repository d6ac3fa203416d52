import type { RedeliveryListing, RedeliveryState } from '#domain/webhooks/redeliveries.ts';
import { badge, type NoticeKind } from '../../components/notice.ts';
import { time } from '../../components/time.ts';
import { type Html, html } from '../../web/html.ts';

const states: Record<RedeliveryState, readonly [NoticeKind | 'plain', string]> = {
  requested: ['info', 'about to begin'],
  running: ['info', 'under way'],
  done: ['good', 'done'],
  cancelled: ['plain', 'cancelled'],
  ended: ['warning', 'ended early'],
};

/** The state of a redelivery in a word. */
export function redeliveryState({ state, cancelRequestedAt, finishedAt }: RedeliveryListing): Html {
  if (cancelRequestedAt !== null && finishedAt === null) return badge('warning', 'stopping');
  return badge(...states[state]);
}

/** What is sent again, in words. */
export const selectionInWords = ({ failedSince, from, to }: RedeliveryListing): Html =>
  failedSince === null
    ? html`events from ${time(from)} to ${time(to)}`
    : html`all that failed since ${time(failedSince)}`;

/** How far it is. */
export function progressInWords({ seen, queued, hurried }: RedeliveryListing): Html {
  const sent = (queued + hurried).toLocaleString('en');
  return html`${sent} of ${seen.toLocaleString('en')} looked at`;
}
