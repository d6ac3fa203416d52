import { createHash } from 'node:crypto';
import type { Tracing } from '#runtime/tracing.ts';
import type { AttemptInput, DeliveryRun } from '#workflows/deliver-event/types.ts';
import type { AttemptLine } from './attempt.ts';
import type { RepairedRow } from './sql/repair.ts';
import type { Claim } from './starts.ts';

/** Returns the trace id of an event: the event id without its dashes. */
const computeTraceId = (eventId: string): string => eventId.replaceAll('-', '');

/** Returns the id of a run's root span, which several processes compute alike. */
const computeRunSpanId = ({ webhookId, run }: Pick<DeliveryRun, 'webhookId' | 'run'>): string =>
  createHash('sha256').update(`${webhookId}/${run}`).digest('hex').slice(0, 16);

const buildIdAttributes = ({ organizationId, webhookId, eventId, run }: DeliveryRun) => ({
  'org_api.organization_id': organizationId,
  'org_api.webhook_id': webhookId,
  'org_api.event_id': eventId,
  'org_api.run': run,
});

/**
 * Records the trace of a delivery. It has a `delivery` span for each run of each webhook, and
 * within it a `delivery.start` (claimed, and its run started) and a `delivery.attempt` for
 * each attempt, with an event at the end of each phase. Attributes are ids, numbers and codes.
 *
 * A run begins by PostgreSQL's clock and the rest by the worker's, so a first child may seem to
 * begin a little before its parent.
 */
export function createDeliveryTraces(tracing: Pick<Tracing, 'record'>) {
  const buildSpanIds = (run: DeliveryRun) => ({
    traceId: computeTraceId(run.eventId),
    spanId: null,
    parentSpanId: computeRunSpanId(run),
  });
  return {
    started({ delivery, requestedAtMs, claimedAtMs }: Claim, startedAtMs: number): void {
      tracing.record({
        ...buildSpanIds(delivery),
        name: 'delivery.start',
        startedAtMs: requestedAtMs,
        endedAtMs: startedAtMs,
        attributes: { ...buildIdAttributes(delivery), 'org_api.event_type': delivery.type },
        events: [{ name: 'claimed', atMs: claimedAtMs }],
      });
    },

    attempted(line: AttemptLine): void {
      const { number, type, outcome, status, cause, startedAtMs, timingsMs } = line;
      tracing.record({
        ...buildSpanIds(line),
        name: 'delivery.attempt',
        kind: 'client',
        startedAtMs,
        endedAtMs: startedAtMs + timingsMs.total,
        attributes: {
          ...buildIdAttributes(line),
          'org_api.event_type': type,
          'org_api.attempt': number,
          'org_api.outcome': outcome,
          'org_api.cause': cause,
          ...(status === null ? {} : { 'http.response.status_code': status }),
        },
        events: listPhases(startedAtMs, timingsMs),
        isError: outcome !== 'delivered',
      });
    },

    lost(repaired: RepairedRow): void {
      const { number, startedAtMs } = repaired;
      if (number === null || startedAtMs === null) return;
      tracing.record({
        ...buildSpanIds(repaired),
        name: 'delivery.attempt',
        kind: 'client',
        startedAtMs,
        endedAtMs: Date.now(),
        attributes: { ...buildIdAttributes(repaired), 'org_api.attempt': number, 'org_api.cause': 'lost' },
        isError: true,
      });
    },

    /**
     * Called when a run has nothing more to do, with its last attempt; null: it made none then.
     * Called again, with the same ids, when Temporal repeats the run's last task.
     */
    ended(run: AttemptInput, line: AttemptLine | null): void {
      const end = line?.outcome === 'delivered' || line?.outcome === 'exhausted' ? line.outcome : 'stopped';
      tracing.record({
        traceId: computeTraceId(run.eventId),
        spanId: computeRunSpanId(run),
        parentSpanId: null,
        name: 'delivery',
        startedAtMs: run.dueAtMs,
        endedAtMs: Date.now(),
        attributes: { ...buildIdAttributes(run), 'org_api.event_type': run.type, 'org_api.outcome': end },
        isError: end === 'exhausted',
      });
    },
  };
}

/** Returns the end of each completed phase, in order. Each is rounded alone, so their sum may pass the total's end. */
function listPhases(startedAtMs: number, { dns, connect, tls, firstByte, total }: AttemptLine['timingsMs']) {
  const phases = { dns, connect, tls, first_byte: firstByte };
  let atMs = startedAtMs;
  return Object.entries(phases).flatMap(([name, durationMs]) => {
    if (durationMs === null || durationMs === undefined) return [];
    atMs = Math.min(atMs + durationMs, startedAtMs + total);
    return [{ name, atMs, attributes: { 'org_api.duration_ms': durationMs } }];
  });
}
