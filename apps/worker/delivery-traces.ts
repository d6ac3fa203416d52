import { createHash } from 'node:crypto';
import type { Tracing } from '#runtime/tracing.ts';
import type { AttemptLine, LostAttempt } from '#workflows/deliver-event/activities.ts';
import type { DeliveryRound, RoundEnd } from '#workflows/deliver-event/types.ts';
import type { ClaimedDelivery } from './relay/claimed-delivery.ts';
import type { StartTimes } from './relay/relay.ts';

/** Returns the trace id of an event: the event id without its dashes. */
const traceIdOf = (eventId: string): string => eventId.replaceAll('-', '');

/** Returns the id of a round's root span, which several processes compute alike. */
const roundSpanIdOf = ({ webhookId, round }: Pick<DeliveryRound, 'webhookId' | 'round'>): string =>
  createHash('sha256').update(`${webhookId}/${round}`).digest('hex').slice(0, 16);

const idsOf = ({ organizationId, webhookId, eventId, round }: DeliveryRound) => ({
  'org_api.organization_id': organizationId,
  'org_api.webhook_id': webhookId,
  'org_api.event_id': eventId,
  'org_api.round': round,
});

/**
 * Records the trace of a delivery. It has a `delivery` span for each round of each webhook, and
 * within it a `delivery.start` (claimed, and its workflow started) and a `delivery.attempt` for
 * each attempt, with an event at the end of each phase. Attributes are ids, numbers and codes.
 *
 * A round begins by PostgreSQL's clock and the rest by the worker's, so a first child may seem to
 * begin a little before its parent.
 */
export function createDeliveryTraces(tracing: Pick<Tracing, 'record'>) {
  const partOf = (round: DeliveryRound) => ({
    traceId: traceIdOf(round.eventId),
    spanId: null,
    parentSpanId: roundSpanIdOf(round),
  });
  return {
    started(delivery: ClaimedDelivery, { askedAtMs, claimedAtMs, startedAtMs }: StartTimes): void {
      tracing.record({
        ...partOf(delivery),
        name: 'delivery.start',
        startedAtMs: askedAtMs,
        endedAtMs: startedAtMs,
        attributes: { ...idsOf(delivery), 'org_api.event_type': delivery.type },
        events: [{ name: 'claimed', atMs: claimedAtMs }],
      });
    },

    attempted(line: AttemptLine): void {
      const { number, type, outcome, status, cause, startedAtMs, timingsMs } = line;
      tracing.record({
        ...partOf(line),
        name: 'delivery.attempt',
        kind: 'client',
        startedAtMs,
        endedAtMs: startedAtMs + timingsMs.total,
        attributes: {
          ...idsOf(line),
          'org_api.event_type': type,
          'org_api.attempt': number,
          'org_api.outcome': outcome,
          'org_api.cause': cause,
          ...(status === null ? {} : { 'http.response.status_code': status }),
        },
        events: phasesOf(startedAtMs, timingsMs),
        isError: outcome !== 'delivered',
      });
    },

    lost(attempt: LostAttempt): void {
      tracing.record({
        ...partOf(attempt),
        name: 'delivery.attempt',
        kind: 'client',
        startedAtMs: attempt.startedAtMs,
        endedAtMs: Date.now(),
        attributes: { ...idsOf(attempt), 'org_api.attempt': attempt.number, 'org_api.cause': 'lost' },
        isError: true,
      });
    },

    /** Called again, with the same ids, when Temporal repeats the workflow's last task. */
    ended(round: RoundEnd): void {
      tracing.record({
        traceId: traceIdOf(round.eventId),
        spanId: roundSpanIdOf(round),
        parentSpanId: null,
        name: 'delivery',
        startedAtMs: round.begunAtMs,
        endedAtMs: Date.now(),
        attributes: {
          ...idsOf(round),
          'org_api.event_type': round.type,
          'org_api.outcome': round.end,
          'org_api.failed_attempts': round.failed,
        },
        isError: round.end === 'exhausted',
      });
    },
  };
}

/** Returns the end of each completed phase, in order. Each is rounded alone, so their sum may pass the total's end. */
function phasesOf(startedAtMs: number, { dns, connect, tls, firstByte, total }: AttemptLine['timingsMs']) {
  const phases = { dns, connect, tls, first_byte: firstByte };
  let atMs = startedAtMs;
  return Object.entries(phases).flatMap(([name, durationMs]) => {
    if (durationMs === null || durationMs === undefined) return [];
    atMs = Math.min(atMs + durationMs, startedAtMs + total);
    return [{ name, atMs, attributes: { 'org_api.duration_ms': durationMs } }];
  });
}
