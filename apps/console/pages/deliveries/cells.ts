import type { FoundDelivery } from '#domain/webhooks/search-deliveries.ts';
import { deliveryStateLabel, deliveryStatus } from '../../components/status.ts';
import { table } from '../../components/table.ts';
import { exactTime, time } from '../../components/time.ts';
import { type Html, html } from '../../web/html.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { of } from '../webhooks/find-webhook.ts';

/** Where a delivery's page is. */
export const deliveryPath = (visit: MemberVisit, eventId: string): string => of(visit, `/deliveries/${eventId}`);

/** A list of deliveries, newest first, each with what it is at now. */
export function deliveriesTable(visit: MemberVisit, deliveries: readonly FoundDelivery[]): Html {
  return table<FoundDelivery>({
    caption: 'Deliveries',
    rows: deliveries,
    columns: [
      {
        heading: 'Event',
        main: true,
        cell: ({ eventId, type }) =>
          html`<a id="d-${eventId}" href="${deliveryPath(visit, eventId)}">${type}</a><br><code>${eventId}</code>`,
      },
      { heading: 'Happened', cell: ({ createdAt }) => time(createdAt) },
      { heading: 'State', cell: deliveryStatus },
      { heading: 'Attempts', numeric: true, cell: ({ attempts }) => String(attempts) },
      { heading: 'Now', cell: nowInWords },
    ],
  });
}

/**
 * What a delivery is at now: the server's clock counts, so a viewer's that is wrong does not
 * matter.
 */
export function nowInWords(delivery: FoundDelivery): Html {
  const { state, settledAt, isAttempting, attempts, dueInMs, nextAttemptAt } = delivery;
  if (isAttempting) return html`attempt ${attempts} is under way`;
  switch (state) {
    case 'waiting': {
      const failed = attempts === 0 ? '' : html`${lastInWords(delivery)}; `;
      if ((dueInMs ?? 0) === 0)
        return html`${failed}${attempts === 0 ? 'its first attempt is about to be made' : 'the next attempt is due now'}`;
      return html`${failed}next attempt ${inWords(dueInMs ?? 0)} (${exactTime(nextAttemptAt)})`;
    }
    case 'parked':
      return html`kept until the webhook is resumed`;
    case 'delivered':
      return html`arrived ${exactTime(settledAt)}`;
    default:
      return html`${deliveryStateLabel(state)} ${exactTime(settledAt)}${delivery.lastCause === null ? '' : html`; last: ${lastInWords(delivery)}`}`;
  }
}

const lastInWords = ({ lastStatus, lastCause }: FoundDelivery): Html =>
  lastStatus === null ? html`<code>${lastCause ?? 'unknown'}</code>` : html`answered ${lastStatus}`;

const units = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** A time ahead in its two largest units: `in 4 min 12 s`. */
export function inWords(ms: number): string {
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

/** How soon a page with these deliveries is to be looked at again; null: nothing moves on it. */
export function refreshSeconds(deliveries: readonly FoundDelivery[]): number | null {
  const moving = deliveries.filter(({ state, isAttempting }) => state === 'waiting' || isAttempting);
  if (moving.length === 0) return null;
  return moving.some(({ isAttempting, dueInMs }) => isAttempting || (dueInMs ?? 0) < 60_000) ? 2 : 10;
}
