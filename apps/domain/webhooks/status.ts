import type { DeliveryState } from './deliveries.ts';
import type { FoundDelivery } from './search-deliveries.ts';
import type { WebhookSummary } from './summary.ts';

/** The words for the status of webhooks and deliveries in the console and orgctl. */

export type WebhookStatus = 'Active' | 'Paused' | 'Suspended' | 'Failing' | 'Deleted';

/** Returns the status of a webhook. A person paused it, or the service suspended it. */
export function webhookStatusOf(w: Pick<WebhookSummary, 'state' | 'parkedReason' | 'failingSince'>): WebhookStatus {
  if (w.state === 'deleted') return 'Deleted';
  if (w.state === 'parked') return w.parkedReason === 'paused' ? 'Paused' : 'Suspended';
  return w.failingSince === null ? 'Active' : 'Failing';
}

/** The status of a delivery by its stored state alone, for filters and counts. */
export const statusOfState = {
  waiting: 'Pending',
  delivered: 'Delivered',
  exhausted: 'Failed',
  cancelled: 'Cancelled',
  parked: 'Held',
} as const satisfies Record<DeliveryState, string>;

export type DeliveryStatus = (typeof statusOfState)[DeliveryState] | 'Delivering' | 'Retrying';

/** Returns the status of a delivery. One that waits and was attempted before is Retrying. */
export function deliveryStatusOf(d: Pick<FoundDelivery, 'state' | 'attempts' | 'isAttempting'>): DeliveryStatus {
  if (d.isAttempting) return 'Delivering';
  return d.state === 'waiting' && d.attempts > 0 ? 'Retrying' : statusOfState[d.state];
}
