import type { Result } from '#domain/audit-log/results.ts';
import type { ClientRow } from '#domain/clients/list-clients.ts';
import type { ReceiptResult } from '#domain/clients/receipt.ts';
import type { KeyUsage } from '#domain/keys/list.ts';
import type { MemberStatus } from '#domain/members/list-members.ts';
import type { AttemptSummary } from '#domain/webhooks/deliveries.ts';
import type { HealthKey } from '#domain/webhooks/health.ts';
import type { RedeliveryRow, RedeliveryState } from '#domain/webhooks/redeliveries.ts';
import type { FoundDelivery } from '#domain/webhooks/search-deliveries.ts';
import {
  type DeliveryStatus,
  getDeliveryStatus,
  getWebhookStatus,
  type WebhookStatus,
} from '#domain/webhooks/status.ts';
import type { WebhookSummary } from '#domain/webhooks/summary.ts';
import { type Html, html } from '#runtime/pages/html.ts';
import { badge, type NoticeKind } from './notice.ts';
import { time } from './time.ts';

/**
 * The words for the status of everything the console shows, each word in one place. Pages call
 * these functions and write no other status.
 */

type Status = readonly [kind: NoticeKind | 'plain', label: string];

const webhookKinds: Record<WebhookStatus, NoticeKind | 'plain'> = {
  Active: 'good',
  Paused: 'warning',
  Suspended: 'warning',
  Failing: 'bad',
  Deleted: 'plain',
};

/** Returns the status of a webhook. */
export function webhookStatus(webhook: Pick<WebhookSummary, 'state' | 'failingSince'>): Html {
  const status = getWebhookStatus(webhook);
  return badge(webhookKinds[status], status);
}

const deliveryKinds: Record<DeliveryStatus, NoticeKind | 'plain'> = {
  Pending: 'info',
  Delivering: 'info',
  Retrying: 'info',
  Held: 'warning',
  Delivered: 'good',
  Failed: 'bad',
  Cancelled: 'plain',
};

/**
 * Returns the status of a delivery: Pending, Delivering, Retrying, Held, Delivered, Failed or
 * Cancelled.
 */
export function deliveryStatus(delivery: Pick<FoundDelivery, 'state' | 'attempts' | 'isAttempting'>): Html {
  const status = getDeliveryStatus(delivery);
  return badge(deliveryKinds[status], status);
}

const receiptResults: Record<ReceiptResult, Status> = {
  acknowledged: ['good', 'Acknowledged'],
  unknown: ['warning', 'Response unknown'],
  pending: ['info', 'Not yet'],
  unsent: ['plain', 'Not sent'],
  failed: ['bad', 'Not acknowledged'],
};

/** Returns what a receipt says of a receiver. */
export const receiptStatus = (result: ReceiptResult): Html => badge(...receiptResults[result]);

/** The labels of a webhook's counts of events, by status. */
export const healthLabels: Record<HealthKey, string> = {
  atOnce: 'Delivered on first attempt',
  afterRetries: 'Delivered after retries',
  pending: 'Pending',
  retrying: 'Retrying',
  held: 'Held',
  failed: 'Failed',
  cancelled: 'Cancelled',
};

/** The color of a result in the audit log. */
export const resultKinds: Record<Result, NoticeKind | 'plain'> = {
  Succeeded: 'good',
  Denied: 'bad',
  'Invalid request': 'warning',
  Completed: 'plain',
  Failed: 'bad',
};

/** Renders a status with its explanation beside it. */
const withRemark = (status: Html, remark: string | Html | null): Html =>
  remark === null ? status : html`${status} <small class="quiet">${remark}</small>`;

/** Returns the outcome of an attempt: its HTTP status, Delivering, Lost or No response. */
export function attemptStatus({
  finishedAt,
  status,
  cause,
}: Pick<AttemptSummary, 'finishedAt' | 'status' | 'cause'>): Html {
  if (finishedAt === null) return badge('info', 'Delivering');
  if (status !== null) return badge(status >= 200 && status < 300 ? 'good' : 'bad', String(status));
  return cause === 'lost' ? badge('warning', 'Lost') : badge('bad', 'No response');
}

const redeliveryStatuses: Record<RedeliveryState, Status> = {
  requested: ['info', 'Pending'],
  running: ['info', 'Delivering'],
  done: ['good', 'Completed'],
  cancelled: ['plain', 'Cancelled'],
  ended: ['bad', 'Failed'],
};

/** Returns the status of a redelivery of many events. */
export function redeliveryStatus({
  state,
  cancelRequestedAt,
  finishedAt,
}: Pick<RedeliveryRow, 'state' | 'cancelRequestedAt' | 'finishedAt'>): Html {
  const status = badge(...redeliveryStatuses[state]);
  return withRemark(status, cancelRequestedAt !== null && finishedAt === null ? 'Stopping' : null);
}

/** Returns whether a receiver accepted a test event. */
export const testEventStatus = (isDelivered: boolean): Html =>
  isDelivered ? badge('good', 'Delivered') : badge('bad', 'Failed');

/** The labels of the two lists of API keys. */
export const keyListLabels = { valid: 'Active', ended: 'Revoked, expired and inactive' };

/**
 * Returns the status of an API key: Active, Inactive (none of its scopes works, or its creator left),
 * Expired or Revoked. What limits an active one is beside it.
 */
export function keyStatus(
  { state, working, scopes, successorId }: Pick<KeyUsage, 'state' | 'working' | 'scopes' | 'successorId'>,
  isExpiringSoon: boolean,
): Html {
  if (state === 'revoked') return badge('plain', 'Revoked');
  if (state === 'expired') return badge('plain', 'Expired');
  if (state === 'inactive') return badge('plain', 'Inactive');
  if (working.length === 0) return badge('bad', 'Inactive');
  if (working.length < scopes.length)
    return withRemark(badge('warning', 'Active'), `${working.length} of ${scopes.length} scopes work`);
  if (successorId !== null) return withRemark(badge('info', 'Active'), 'Replaced');
  return isExpiringSoon ? withRemark(badge('warning', 'Active'), 'Expires soon') : badge('good', 'Active');
}

const memberStatuses: Record<MemberStatus, Status> = {
  active: ['good', 'Active'],
  invited: ['info', 'Invited'],
  suspended: ['warning', 'Suspended'],
  left: ['plain', 'Removed'],
};

/** The label of a member's status, for filters. */
export const memberStatusLabel = (status: MemberStatus): string => memberStatuses[status][1];

export const memberStatus = (status: MemberStatus): Html => badge(...memberStatuses[status]);

const clientStatuses: Record<ClientRow['status'], Status> = {
  scheduled: ['info', 'Scheduled'],
  active: ['good', 'Active'],
  ended: ['plain', 'Ended'],
  withdrawn: ['plain', 'Withdrawn'],
};

/** The label of a client's status, for filters. */
export const clientStatusLabel = (status: ClientRow['status']): string => clientStatuses[status][1];

/** Renders a client's status, with the begin of access that lies ahead. */
export const clientStatus = ({ status, since }: Pick<ClientRow, 'status' | 'since'>): Html =>
  withRemark(badge(...clientStatuses[status]), status === 'scheduled' ? html`Begins on ${time(since)}` : null);
