import type { Pool } from 'pg';
import { openSecret } from '#domain/webhooks/seal.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import {
  type ActivityDependencies,
  type AttemptLine,
  createDeliveryActivities,
} from '#workflows/deliver-event/activities.ts';
import { createRedeliveryActivities } from '#workflows/redeliver/activities.ts';
import { createTestActivities } from '#workflows/send-test/activities.ts';
import { allowOf } from './attempt/allow.ts';
import { postOnce } from './attempt/post.ts';
import { createResolve } from './attempt/resolve.ts';
import type { WorkerConfig } from './config.ts';
import type { createDeliveryTraces } from './delivery-traces.ts';
import type { Metrics } from './metrics.ts';
import { createReceiverSpeed } from './receiver-speed.ts';

/** All activities that this worker registers, over its connections; each attempt is counted, logged and traced. */
export function createActivities(options: {
  config: WorkerConfig;
  pool: Pool;
  metrics: Metrics;
  traces: ReturnType<typeof createDeliveryTraces>;
  log: Logger;
  /** Called when an attempt has released its concurrency slot. */
  onAttemptEnded: () => void;
}) {
  const { config, pool, metrics, traces, log, onAttemptEnded } = options;
  const resolve = createResolve();
  const speed = createReceiverSpeed({
    pool,
    onError: (cause) => log.error({ error: describeError(cause) }, 'a receiver’s speed could not be recorded'),
  });
  const dependencies: ActivityDependencies = {
    pool,
    post: ({ webhookId, ...request }) => postOnce({ ...request, allow: allowOf(config, webhookId), resolve }),
    sign: ({ organizationId, webhookId, eventId }, sealed, body) => ({
      ...signatureHeaders({
        id: eventId,
        timestampSeconds: Math.floor(Date.now() / 1000),
        body,
        secrets: sealed.map((secret) => openSecret(secret, { organizationId, webhookId }, config.webhookSecretKeys)),
      }),
      'Content-Type': 'application/json',
      'User-Agent': 'org-api-webhooks/1.0',
    }),
    onAttempt: (line) => {
      onAttemptEnded();
      if (line.outcome !== 'postponed') void speed.record(line, line.timingsMs.total); // the receiver had its chance
      tell(line);
    },
    onLost: (lost) => {
      onAttemptEnded();
      traces.lost(lost);
    },
    onFault: (cause, { organizationId, webhookId, eventId }) =>
      log.error(
        { error: describeError(cause), organizationId, webhookId, eventId },
        'an attempt could not be made or recorded; its workflow goes on',
      ),
  };
  const redeliveryActivities = createRedeliveryActivities({
    pool,
    leaseMs: config.reconcileAfterMs,
    onFault: (cause, redelivery) =>
      log.error({ error: describeError(cause), ...redelivery }, 'a page of a redelivery failed; tried again soon'),
  });

  function tell(line: AttemptLine): void {
    const { timingsMs, startedAtMs, ...logged } = line;
    metrics.attempts.observe({ outcome: line.outcome, cause: line.cause }, timingsMs.total / 1000);
    if (line.number === 1)
      metrics.firstAttemptDelay.observe(Math.max(0, startedAtMs - uuidV7TimeMs(line.eventId)) / 1000);
    log.info({ ...logged, durationMs: timingsMs.total }, 'attempt');
    traces.attempted(line);
  }

  return {
    ...createDeliveryActivities(dependencies),
    ...createTestActivities(dependencies),
    ...redeliveryActivities,
  };
}

/** When a UUID v7 was made, in milliseconds since 1970: events' ids are made with them, in the database. */
function uuidV7TimeMs(id: string): number {
  return Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
}
