import type { Pool } from 'pg';
import { openSecret } from '#domain/webhooks/seal.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import {
  type ActivityDependencies,
  type AttemptLine,
  createDeliveryActivities,
} from '#workflows/deliver-event/activities.ts';
import { createTestActivities } from '#workflows/send-test/activities.ts';
import { postOnce } from './attempt/post.ts';
import { createResolve } from './attempt/resolve.ts';
import type { WorkerConfig } from './config.ts';
import type { Metrics } from './metrics.ts';
import { reconcile } from './relay/reconciler.ts';
import { createRelay } from './relay/relay.ts';
import { openTemporal } from './relay/temporal.ts';

/** How often overdue deliveries are looked for, in parts of the time after which they count as overdue: every 15 s with the default of 60 s. */
const reconcilesPerOverdue = 4;

/**
 * The delivery half of the worker: Temporal's workers with the activities, the relay that starts workflows, and the reconciler that mends what was lost.
 * Opened top to bottom; `stop` claims nothing more, lets attempts under way end, and closes in reverse.
 */
export async function startDeliveries(options: { config: WorkerConfig; pool: Pool; metrics: Metrics; log: Logger }) {
  const { config, pool, metrics, log } = options;
  const resolve = createResolve();
  const dependencies: ActivityDependencies = {
    pool,
    post: (request) => postOnce({ ...request, allow: config.webhookAllow, resolve }),
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
    onAttempt: (line) => tell(line),
    onFault: (cause, { organizationId, webhookId, eventId }) =>
      log.error(
        { error: describeError(cause), organizationId, webhookId, eventId },
        'an attempt could not be made or recorded; its workflow goes on',
      ),
  };
  const activities = { ...createDeliveryActivities(dependencies), ...createTestActivities(dependencies) };
  const temporal = await openTemporal({
    address: config.temporalAddress,
    namespace: config.temporalNamespace,
    activities,
    delaysMs: config.delaysMs,
    promptSlots: config.promptSlots,
    slowSlots: config.slowSlots,
    bundle: null,
  });
  const relay = createRelay({
    pool,
    databaseUrl: config.databaseUrl,
    startWorkflow: temporal.startWorkflow,
    onClaimed: (deliveries) => metrics.claimed.inc(deliveries),
    onError: (cause) =>
      log.error({ error: describeError(cause) }, 'deliveries could not be claimed or started; tried again in a second'),
  });
  await relay.start();
  let reconciling: Promise<void> | null = null;
  const stopping = new AbortController();
  const reconciler = setInterval(() => {
    reconciling ??= repair().finally(() => {
      reconciling = null;
    });
  }, config.reconcileAfterMs / reconcilesPerOverdue);

  async function repair(): Promise<void> {
    try {
      const repaired = await reconcile({
        pool,
        isRunning: temporal.isRunning,
        overdueMs: config.reconcileAfterMs,
        signal: stopping.signal,
      });
      metrics.repaired.inc(repaired);
      if (repaired > 0) {
        log.warn({ repaired }, 'overdue deliveries had no workflow and were given a new round');
        relay.wake();
      }
    } catch (cause) {
      log.error({ error: describeError(cause) }, 'overdue deliveries could not be looked after; tried again soon');
    }
  }

  function tell(line: AttemptLine): void {
    metrics.attempts.observe({ outcome: line.outcome, cause: line.cause }, line.durationMs / 1000);
    log.info(line, 'attempt');
  }

  return {
    failed: temporal.running,
    async stop(): Promise<void> {
      clearInterval(reconciler);
      stopping.abort();
      await relay.stop();
      await reconciling;
      await temporal.stop();
    },
  };
}
