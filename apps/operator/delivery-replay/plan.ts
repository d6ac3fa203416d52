import type { RedeliveryRow } from '#domain/webhooks/redeliveries.ts';
import { condition, showTime } from '../controller/conditions.ts';
import type { Failure, JudgedCondition, Report } from '../controller/contract.ts';
import type { Reason } from '../controller/reasons.ts';
import type { DeliveryReplay } from '../resources.ts';

/** Keeps an object until its redelivery has ended or is cancelled. */
export const replayFinalizer = 'orgapi.dev/redelivery';

export interface ObservedReplay {
  now: Date;
  /** Null: none was requested, or this is a dry run. */
  redelivery: RedeliveryRow | null;
  /** Events that a dry run counted; null: this is none. */
  counted: { events: number; isCapped: boolean } | null;
}

export type ReplayAction =
  | { kind: 'addFinalizer' }
  | { kind: 'requestRedelivery' }
  | { kind: 'cancelRedelivery' }
  | { kind: 'removeFinalizer' }
  | { kind: 'deleteReplay' };

/** Returns what is left to do for a replay, in order. */
export function planReplay(resource: DeliveryReplay, { now, redelivery }: ObservedReplay): ReplayAction[] {
  const { metadata, spec, status } = resource;
  const hasFinalizer = metadata.finalizers?.includes(replayFinalizer) === true;
  if (metadata.deletionTimestamp !== undefined)
    return isOpen(redelivery)
      ? [{ kind: 'cancelRedelivery' }, { kind: 'removeFinalizer' }]
      : [{ kind: 'removeFinalizer' }];
  if (status?.finishedAt !== undefined) {
    const isExpired = Date.parse(status.finishedAt) + spec.ttlSecondsAfterFinished * 1_000 <= now.getTime();
    return isExpired ? [{ kind: 'deleteReplay' }] : [];
  }
  if (spec.dryRun || redelivery !== null) return [];
  return hasFinalizer ? [{ kind: 'requestRedelivery' }] : [{ kind: 'addFinalizer' }, { kind: 'requestRedelivery' }];
}

const isOpen = (redelivery: RedeliveryRow | null): boolean =>
  redelivery?.state === 'requested' || redelivery?.state === 'running';

/** Refusals that no later try changes. */
const finalRefusals: ReadonlySet<Reason> = new Set(['EventTooOld', 'EmptyRange', 'WebhookDeleted']);

/** Returns the status of a replay. Once it has ended, its status stays. */
export function reportReplay(
  resource: DeliveryReplay,
  observed: ObservedReplay | null,
  failure: Failure | null,
): Report<DeliveryReplay> {
  const { status } = resource;
  if (status?.finishedAt !== undefined) return status as Report<DeliveryReplay>; // the operator wrote it
  const conditions = observed && endOf(observed, failure);
  if (conditions) return { ...countsOf(observed), finishedAt: showTime(observed.now), conditions };
  return { ...countsOf(observed), conditions: judge(null, failure ?? progressOf(observed?.redelivery)) };
}

function countsOf(observed: ObservedReplay | null) {
  if (observed === null) return {};
  const { redelivery, counted } = observed;
  if (counted !== null) return { matched: counted.events, redelivered: 0, failed: 0 };
  if (redelivery === null) return {};
  const { id, matched, queued, retriesRequested } = redelivery;
  const redelivered = queued + retriesRequested;
  return { id, matched, redelivered, failed: matched - redelivered };
}

/** Returns the conditions of a replay that has ended; null for any other. */
function endOf({ redelivery, counted }: ObservedReplay, failure: Failure | null): JudgedCondition[] | null {
  if (failure !== null && finalRefusals.has(failure.reason)) return judge('Failed', failure);
  if (counted !== null) {
    const message = `${counted.isCapped ? 'At least ' : ''}${counted.events} deliveries match.`;
    return judge('Complete', { reason: 'DryRun', message });
  }
  if (redelivery?.state === 'done')
    return judge('Complete', { reason: 'Redelivered', message: 'Every delivery that matched was passed.' });
  if (redelivery?.state === 'cancelled')
    return judge('Failed', { reason: 'Cancelled', message: 'The redelivery was cancelled.' });
  if (redelivery?.state !== 'ended') return null;
  if (redelivery.endReason !== 'webhook_parked')
    return judge('Failed', { reason: 'WebhookDeleted', message: 'The webhook was deleted.' });
  const message = 'The webhook was paused or suspended. Resume it, and create another replay for the rest.';
  return judge('Failed', { reason: 'WebhookParked', message });
}

/** Returns both conditions, of which the one that `end` names holds; null: neither. */
const judge = (end: 'Complete' | 'Failed' | null, { reason, message }: Failure): JudgedCondition[] =>
  ['Complete', 'Failed'].map((type) => condition(type, type === end, reason, message));

const progressOf = (redelivery: RedeliveryRow | null | undefined): Failure =>
  redelivery?.state === 'running'
    ? { reason: 'Running', message: 'Deliveries are being sent again.' }
    : { reason: 'Requested', message: 'No worker has begun yet.' };
