import type { DeliveryState } from './deliveries.ts';
import type { FoundDelivery } from './search-deliveries.ts';
import type { WebhookSummary } from './summary.ts';

/** The words for the status of webhooks and deliveries in the console and orgctl. */

export type WebhookStatus = 'Active' | 'Paused' | 'Suspended' | 'Failing' | 'Deleted';

/** Returns the status of a webhook. A person paused it, or the service suspended it. */
export function webhookStatusOf({
  state,
  parkedReason,
  failingSince,
}: Pick<WebhookSummary, 'state' | 'parkedReason' | 'failingSince'>): WebhookStatus {
  if (state === 'deleted') return 'Deleted';
  if (state === 'parked') return parkedReason === 'paused' ? 'Paused' : 'Suspended';
  return failingSince === null ? 'Active' : 'Failing';
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
export function deliveryStatusOf({
  state,
  attempts,
  isAttempting,
}: Pick<FoundDelivery, 'state' | 'attempts' | 'isAttempting'>): DeliveryStatus {
  if (isAttempting) return 'Delivering';
  return state === 'waiting' && attempts > 0 ? 'Retrying' : statusOfState[state];
}
