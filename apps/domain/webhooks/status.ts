import type { Progress, ShownState } from './deliveries.ts';
import type { FoundDelivery } from './search-deliveries.ts';
import type { WebhookSummary } from './summary.ts';
import type { WebhookState } from './webhook.entity.ts';

/** The words for the status of webhooks and deliveries in the console and orgctl. */

export type WebhookStatus = 'Active' | 'Paused' | 'Suspended' | 'Failing' | 'Deleted';

/** The status of a webhook by its state. An active one may also be Failing. */
export const statusOfWebhookState = {
  active: 'Active',
  paused: 'Paused',
  suspended: 'Suspended',
  deleted: 'Deleted',
} as const satisfies Record<WebhookState, WebhookStatus>;

/** Returns whether a webhook is paused or suspended, and holds its open deliveries. */
export const holdsDeliveries = (state: WebhookState): boolean => state === 'paused' || state === 'suspended';

/** Returns the status of a webhook. A person paused it, or the service suspended it. */
export function getWebhookStatus(w: Pick<WebhookSummary, 'state' | 'failingSince'>): WebhookStatus {
  return w.state === 'active' && w.failingSince !== null ? 'Failing' : statusOfWebhookState[w.state];
}

/** The status of a delivery by its state. One that waits may also be Delivering or Retrying. */
export const statusOfState = {
  waiting: 'Pending',
  delivered: 'Delivered',
  exhausted: 'Failed',
  cancelled: 'Cancelled',
  held: 'Held',
} as const satisfies Record<ShownState, string>;

/** Every status of a delivery, in the order of filters and charts. */
export const deliveryStatuses = [
  'Pending',
  'Delivering',
  'Retrying',
  'Held',
  'Delivered',
  'Failed',
  'Cancelled',
] as const satisfies readonly (Progress | (typeof statusOfState)[ShownState])[];

export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** The state, and the progress of a waiting delivery, that a status stands for. */
export const selectionOfStatus: Record<DeliveryStatus, { state: ShownState; progress: Progress | null }> = {
  Pending: { state: 'waiting', progress: 'Pending' },
  Delivering: { state: 'waiting', progress: 'Delivering' },
  Retrying: { state: 'waiting', progress: 'Retrying' },
  Held: { state: 'held', progress: null },
  Delivered: { state: 'delivered', progress: null },
  Failed: { state: 'exhausted', progress: null },
  Cancelled: { state: 'cancelled', progress: null },
};

/** Returns the status of a delivery. One that waits and was attempted before is Retrying. */
export function getDeliveryStatus(d: Pick<FoundDelivery, 'state' | 'attempts' | 'isAttempting'>): DeliveryStatus {
  if (d.state !== 'waiting') return statusOfState[d.state];
  if (d.isAttempting) return 'Delivering';
  return d.attempts > 0 ? 'Retrying' : 'Pending';
}
