import type { KeyUsage } from '#domain/keys/usage.ts';
import type { ClientRow } from '#domain/organization/list-clients.ts';
import type { MemberStatus } from '#domain/organization/list-members.ts';
import type { AttemptSummary, DeliveryState } from '#domain/webhooks/deliveries.ts';
import type { RedeliveryRow, RedeliveryState } from '#domain/webhooks/redeliveries.ts';
import type { FoundDelivery } from '#domain/webhooks/search-deliveries.ts';
import type { WebhookSummary } from '#domain/webhooks/summary.ts';
import type { Html } from '../web/html.ts';
import { badge, type NoticeKind } from './notice.ts';

/**
 * The words for the status of everything the console shows, each word in one place. Pages call
 * these functions and write no status of their own.
 */

type Status = readonly [kind: NoticeKind | 'plain', label: string];

/** Returns the status of a webhook: Active, Resuming, Failing, Paused, Suspended or Deleted. */
export function webhookStatus(webhook: Pick<WebhookSummary, 'state' | 'parkedReason' | 'failingSince' | 'ramp'>): Html {
  const { state, parkedReason, failingSince, ramp } = webhook;
  if (state === 'deleted') return badge('plain', 'Deleted');
  if (state === 'parked') return badge('warning', parkedReason === 'paused' ? 'Paused' : 'Suspended');
  if (failingSince !== null) return badge('bad', 'Failing');
  return ramp === null ? badge('good', 'Active') : badge('info', 'Resuming');
}

const deliveryStatuses: Record<DeliveryState, Status> = {
  waiting: ['info', 'Pending'],
  delivered: ['good', 'Delivered'],
  exhausted: ['bad', 'Failed'],
  cancelled: ['plain', 'Cancelled'],
  parked: ['warning', 'Held'],
};

/** The label of a delivery's stored state, for filters and counts. */
export const deliveryStateLabel = (state: DeliveryState): string => deliveryStatuses[state][1];

/**
 * Returns the status of a delivery: Pending, Delivering, Retrying, Held, Delivered, Failed or
 * Cancelled. A pending delivery that was attempted before is Retrying.
 */
export function deliveryStatus({
  state,
  attempts,
  isAttempting,
}: Pick<FoundDelivery, 'state' | 'attempts' | 'isAttempting'>): Html {
  if (isAttempting) return badge('info', 'Delivering');
  if (state === 'waiting' && attempts > 0) return badge('info', 'Retrying');
  return badge(...deliveryStatuses[state]);
}

/** Returns the outcome of an attempt: its HTTP status, In progress, Lost or No response. */
export function attemptStatus({
  finishedAt,
  status,
  cause,
}: Pick<AttemptSummary, 'finishedAt' | 'status' | 'cause'>): Html {
  if (finishedAt === null) return badge('info', 'In progress');
  if (status !== null) return badge(status >= 200 && status < 300 ? 'good' : 'bad', String(status));
  return cause === 'lost' ? badge('warning', 'Lost') : badge('bad', 'No response');
}

const redeliveryStatuses: Record<RedeliveryState, Status> = {
  requested: ['info', 'Queued'],
  running: ['info', 'In progress'],
  done: ['good', 'Completed'],
  cancelled: ['plain', 'Cancelled'],
  ended: ['warning', 'Stopped early'],
};

/** Returns the status of a redelivery of many events. */
export function redeliveryStatus({
  state,
  cancelRequestedAt,
  finishedAt,
}: Pick<RedeliveryRow, 'state' | 'cancelRequestedAt' | 'finishedAt'>): Html {
  if (cancelRequestedAt !== null && finishedAt === null) return badge('warning', 'Cancelling');
  return badge(...redeliveryStatuses[state]);
}

/** Returns whether a receiver accepted a test event. */
export const testEventStatus = (isDelivered: boolean): Html =>
  isDelivered ? badge('good', 'Delivered') : badge('bad', 'Failed');

/**
 * Returns the status of an API key: Active, Expires soon, Rotating, Limited (some of its scopes no
 * longer work), Inactive (none works, or its owner left), Expired or Revoked.
 */
export function keyStatus(
  { state, working, scopes, successorId }: Pick<KeyUsage, 'state' | 'working' | 'scopes' | 'successorId'>,
  isExpiringSoon: boolean,
): Html {
  if (state === 'revoked') return badge('plain', 'Revoked');
  if (state === 'expired') return badge('plain', 'Expired');
  if (state === 'inactive') return badge('plain', 'Inactive');
  if (working.length === 0) return badge('bad', 'Inactive');
  if (working.length < scopes.length) return badge('warning', 'Limited');
  if (successorId !== null) return badge('info', 'Rotating');
  return isExpiringSoon ? badge('warning', 'Expires soon') : badge('good', 'Active');
}

const memberStatuses: Record<MemberStatus, Status> = {
  active: ['good', 'Active'],
  invited: ['info', 'Invited'],
  suspended: ['warning', 'Suspended'],
  left: ['plain', 'Removed'],
};

/** Returns the status of a member. */
export const memberStatus = (status: MemberStatus): Html => badge(...memberStatuses[status]);

/** Returns the status of a client's access. */
export const clientStatus = ({ status }: Pick<ClientRow, 'status'>): Html =>
  status === 'active' ? badge('good', 'Active') : badge('plain', 'Ended');
