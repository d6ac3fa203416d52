import type { Pool } from 'pg';
import { allowOf } from '#delivery/post/allow.ts';
import { postOnce } from '#delivery/post/post.ts';
import { createResolve } from '#delivery/post/resolve.ts';
import { TlsSessions } from '#delivery/post/tls-sessions.ts';
import { type SealingKeys, SecretNotUnsealed, unsealSecret } from '#domain/webhooks/seal.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { describeError, errorLogger, type Logger } from '#runtime/log.ts';
import {
  type ActivityDependencies,
  type AttemptLine,
  createDeliveryActivities,
  type InternalErrorCode,
} from '#workflows/deliver-event/activities.ts';
import { createRedeliveryActivities } from '#workflows/redeliver/activities.ts';
import { createTestActivities } from '#workflows/send-test/activities.ts';
import type { WorkerConfig } from './config.ts';
import type { createDeliveryTraces } from './delivery-traces.ts';
import type { Metrics } from './metrics.ts';
import { createReceiverSpeed } from './receiver-speed.ts';
import type { Trial } from './trial.ts';

/** Creates the worker's activities. Each attempt is counted, logged and traced. */
export function createActivities(options: {
  config: WorkerConfig;
  pool: Pool;
  metrics: Metrics;
  traces: ReturnType<typeof createDeliveryTraces>;
  log: Logger;
  trial: Pick<Trial, 'countDelivery' | 'fail'>;
  /** Called when an attempt has released its concurrency slot. */
  onAttemptEnded: () => void;
}) {
  const { config, pool, metrics, traces, log, trial, onAttemptEnded } = options;
  const resolve = createResolve();
  const sessions = new TlsSessions();
  const sign = signWith(() => config.webhookSecretKeys);
  const speed = createReceiverSpeed({ pool, onError: errorLogger(log, 'a receiver’s speed could not be recorded') });
  const dependencies: ActivityDependencies = {
    pool,
    post: ({ organizationId, webhookId, ...request }) =>
      speed.watch({ organizationId, webhookId }, () =>
        postOnce({
          ...request,
          allow: allowOf(config, webhookId),
          resolve,
          tls: { sessions, webhookId },
          onInternalError: (error) => {
            log.error({ ...describe(error), webhookId }, internalErrorLines.internal_error);
            trial.fail('A request could not be prepared.');
          },
        }),
      ),
    sign(delivery, toBeSigned) {
      try {
        return sign(delivery, toBeSigned);
      } catch (error) {
        trial.fail('A request could not be signed.');
        throw error;
      }
    },
    onAttempt: (line) => {
      onAttemptEnded();
      // Internal errors say nothing about the receiver's speed.
      if (line.outcome !== 'internal_error') {
        void speed.record(line, line.timingsMs.total);
        trial.countDelivery();
      }
      report(line);
    },
    onLost: (lost) => {
      onAttemptEnded();
      traces.lost(lost);
    },
    onInternalError: (error, { organizationId, webhookId, eventId }, code) => {
      // An attempt that could not be prepared ends with this cause and is counted there.
      if (code !== 'internal_error') metrics.internalErrors.inc({ cause: code });
      log.error({ ...describe(error), code, organizationId, webhookId, eventId }, internalErrorLines[code]);
    },
  };
  function report(line: AttemptLine): void {
    const { timingsMs, startedAtMs, ...logged } = line;
    metrics.attempts.observe({ outcome: line.outcome, cause: line.cause }, timingsMs.total / 1000);
    if (line.number === 1)
      metrics.firstAttemptDelay.observe(Math.max(0, startedAtMs - uuidV7TimeMs(line.eventId)) / 1000);
    if (line.outcome === 'internal_error') metrics.internalErrors.inc({ cause: line.cause });
    log.info({ ...logged, durationMs: timingsMs.total }, 'attempt');
    traces.attempted(line);
  }

  return {
    ...createDeliveryActivities(dependencies),
    ...createTestActivities(dependencies),
    ...createRedeliveryActivities({
      pool,
      leaseMs: config.reconcileAfterMs,
      onInternalError: (cause, redelivery) =>
        log.error({ error: describeError(cause), ...redelivery }, 'a page of a redelivery failed; tried again soon'),
    }),
  };
}

/** Returns a function that signs attempts. It calls `keys` for each: their file may change. */
export function signWith(keys: () => SealingKeys): ActivityDependencies['sign'] {
  return ({ organizationId, webhookId, eventId }, { sealed, body, timestampSeconds }) => ({
    ...signatureHeaders({
      id: eventId,
      timestampSeconds,
      body,
      secrets: sealed.map((secret) => unsealSecret(secret, { organizationId, webhookId }, keys())),
    }),
    'Content-Type': 'application/json',
    // Some firewalls refuse a request without it.
    Accept: '*/*',
    'User-Agent': 'org-api-webhooks/1.0',
  });
}

/** Returns what is logged of an error; only a remedy's text, which contains no secret, is added. */
const describe = (error: unknown) => ({
  error: describeError(error),
  ...(error instanceof SecretNotUnsealed ? { remedy: error.message } : {}),
});

const internalErrorLines: Record<InternalErrorCode, string> = {
  internal_error: 'a request could not be prepared; nothing was sent, and the attempt is made again later',
  activity_failed: 'an attempt could not be admitted, made or recorded; its workflow continues',
  delivery_missing: 'an outcome could not be recorded: its delivery is missing, as after a failover that lost commits',
};

/** Returns the time of a UUID v7 (an event's id, made by the database) in ms since 1970. */
function uuidV7TimeMs(id: string): number {
  return Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
}
