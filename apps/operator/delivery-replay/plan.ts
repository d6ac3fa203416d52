import type { RedeliveryRow } from '#domain/webhooks/redeliveries.ts';
import { condition } from '../controller/conditions.ts';
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
  if (status?.finishedAt !== undefined) {
    const { observedGeneration: _, conditions = [], ...fields } = status;
    const judged = conditions.map(({ type, status: holds, reason, message }) => ({
      type,
      status: holds,
      reason: reason as Reason, // the operator wrote it
      message,
    }));
    return { ...fields, conditions: judged };
  }
  const ended = observed === null ? null : endOf(observed, failure);
  const finishedAt = ended === null || observed === null ? {} : { finishedAt: toSeconds(observed.now) };
  const conditions = ended ?? pending(failure ?? progressOf(observed?.redelivery ?? null));
  return { ...countsOf(observed), ...finishedAt, conditions };
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

function endOf({ redelivery, counted }: ObservedReplay, failure: Failure | null): JudgedCondition[] | null {
  if (failure !== null && finalRefusals.has(failure.reason)) return failed(failure.reason, failure.message);
  if (counted !== null)
    return completed(
      'DryRun',
      counted.isCapped ? `At least ${counted.events} deliveries match.` : `${counted.events} deliveries match.`,
    );
  if (redelivery?.state === 'done') return completed('Redelivered', 'Every delivery that matched was passed.');
  if (redelivery?.state === 'cancelled') return failed('Cancelled', 'The redelivery was cancelled.');
  if (redelivery?.state !== 'ended') return null;
  return redelivery.endReason === 'webhook_parked'
    ? failed('WebhookParked', 'The webhook was paused or suspended. Resume it, and create another replay for the rest.')
    : failed('WebhookDeleted', 'The webhook was deleted.');
}

const completed = (reason: Reason, message: string) => [
  condition('Complete', true, reason, message),
  condition('Failed', false, reason, message),
];
const failed = (reason: Reason, message: string) => [
  condition('Complete', false, reason, message),
  condition('Failed', true, reason, message),
];
const pending = ({ reason, message }: Failure) => [
  condition('Complete', false, reason, message),
  condition('Failed', false, reason, message),
];

function progressOf(redelivery: RedeliveryRow | null): Failure {
  return redelivery?.state === 'running'
    ? { reason: 'Running', message: 'Deliveries are being sent again.' }
    : { reason: 'Requested', message: 'No worker has begun yet.' };
}

const toSeconds = (time: Date): string => time.toISOString().replace(/\.\d{3}Z$/, 'Z');
