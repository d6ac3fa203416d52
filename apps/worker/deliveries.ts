import type { Pool } from 'pg';
import { errorLogger, type Logger } from '#runtime/log.ts';
import type { Tracing } from '#runtime/tracing.ts';
import { isAway } from '#workflows/connection.ts';
import { deliverQueue } from '#workflows/deliver-event/types.ts';
import { createActivities } from './activities.ts';
import { createKeptConnections } from './attempt/kept-connections.ts';
import type { WorkerConfig } from './config.ts';
import { createDeliveryTraces } from './delivery-traces.ts';
import type { Metrics } from './metrics.ts';
import { createRedeliveryStarter } from './relay/redeliveries.ts';
import { createRelay } from './relay/relay.ts';
import { createRepairs } from './relay/repairs.ts';
import { readTaskCounts } from './relay/task-counts.ts';
import { openTemporal } from './relay/temporal.ts';
import { createTemporalMetrics } from './relay/temporal-metrics.ts';
import { createVersions, type WorkerVersion } from './relay/versions.ts';

interface DeliveriesOptions {
  config: WorkerConfig;
  pool: Pool;
  metrics: Metrics;
  tracing: Tracing;
  log: Logger;
  /** host:port of the metrics of Temporal's core; only a versioned worker needs them. */
  coreMetrics?: string | undefined;
}

/**
 * The delivery part of the worker: Temporal's workers with the activities, the relay that starts
 * workflows, and the repairs.
 *
 * Resolves when it runs or Temporal does not answer yet; events then wait in PostgreSQL. A failure
 * that a retry cannot repair (code that does not bundle) is unhandled on purpose: it ends the
 * process, which Kubernetes restarts.
 */
export async function startDeliveries(options: DeliveriesOptions) {
  const { log } = options;
  const stopping = new AbortController();
  let open: { stop(): Promise<void> } | null = null;
  let opening: Promise<void> = Promise.resolve();
  await new Promise<void>((found) => {
    const onProblem = (problem: string) => {
      log.warn({ problem }, 'temporal');
      found();
    };
    opening = openDeliveries(options, onProblem, stopping.signal).then(
      (opened) => {
        open = opened;
        found();
      },
      (cause: unknown) => {
        if (!stopping.signal.aborted) throw cause;
      },
    );
  });

  return {
    /** False until Temporal has answered. */
    isOpen: () => open !== null,
    /** Stops claiming, waits for attempts in progress, and closes in reverse order. */
    async stop(): Promise<void> {
      stopping.abort();
      await opening;
      await open?.stop();
    },
  };
}

/** Opens the parts from top to bottom. Rejects when `signal` aborts before Temporal answers. */
async function openDeliveries(
  { config, pool, metrics, tracing, log, coreMetrics }: DeliveriesOptions,
  onProblem: (problem: string) => void,
  signal: AbortSignal,
): Promise<{ stop(): Promise<void> }> {
  const traces = createDeliveryTraces(tracing);
  const connections = createKeptConnections();
  // Activities run as soon as Temporal is open, which the relay needs.
  let relay: ReturnType<typeof createRelay> | null = null;
  const wakeRelay = () => relay?.wake();
  const temporal = await openTemporal({
    ...config.temporal,
    activities: createActivities({ config, pool, metrics, traces, log, connections, onAttemptEnded: wakeRelay }),
    delaysMs: config.delaysMs,
    strandedAfterMs: config.reconcileAfterMs,
    promptSlots: config.promptSlots,
    slowSlots: config.slowSlots,
    bundle: config.workflowBundle,
    version: config.version,
    offersReplay: config.rollout === 'operator',
    onRoundEnded: traces.ended,
    onProblem,
    signal,
  });
  const versions = config.version === null ? null : versionsOf(config.version);
  if (versions === null) metrics.versionIsCurrent.set(1);
  signal.addEventListener('abort', () => void versions?.stop(), { once: true });
  await versions?.start().catch((cause: Error) => {
    log.error({ own: config.version?.buildId }, cause.message);
    throw cause;
  });
  const temporalMetrics = createTemporalMetrics({
    service: temporal.service,
    namespace: config.temporal.namespace,
    registry: metrics.registry,
    onError: errorLogger(log, 'Temporal did not answer about its queues; asked again soon'),
  });
  await temporalMetrics.start();
  const redeliveries = createRedeliveryStarter({
    pool,
    client: temporal.client,
    strandedAfterMs: config.reconcileAfterMs,
    onError: errorLogger(log, 'redeliveries could not be claimed or started; tried again soon'),
  });
  relay = createRelay({
    pool,
    startWorkflow: (delivery) => temporal.withinDeadline(() => temporal.startWorkflow(delivery)),
    isAway,
    onClaimed: (deliveries) => metrics.claimed.inc(deliveries),
    onStarted: traces.started,
    onError: errorLogger(log, 'deliveries could not be claimed or started; tried again soon'),
  });
  relay.start();
  void redeliveries.start();
  const repairs = createRepairs({
    pool,
    temporal,
    overdueMs: config.reconcileAfterMs,
    onReconciled: ({ begun, retriesRequested, failing, stranded }) => {
      metrics.repaired.inc(begun);
      metrics.retriesRequested.inc(retriesRequested);
      if (begun > 0) {
        log.warn({ repaired: begun }, 'overdue deliveries had no workflow and were given a new round');
        wakeRelay();
      }
      metrics.replacedWorkflows.inc({ reason: 'failing' }, failing);
      metrics.replacedWorkflows.inc({ reason: 'stranded' }, stranded);
      if (failing + stranded > 0) {
        log.error(
          { failing, stranded },
          'workflows made no progress; terminated, and their deliveries given a new round',
        );
        relay.wake();
      }
      if (retriesRequested > 0)
        log.warn({ retriesRequested }, 'overdue deliveries were waiting in Temporal and were asked to retry now');
    },
    onCancelled: (workflows) => {
      metrics.cancelledWorkflows.inc(workflows);
      if (workflows > 0)
        log.info({ workflows }, 'ended workflows whose delivery is parked, settled or in another round');
    },
    onLost: (lost) => {
      wakeRelay();
      traces.lost(lost);
    },
    onError: errorLogger(log, 'deliveries could not be repaired; tried again soon'),
  });
  void repairs.start();

  function versionsOf(version: WorkerVersion) {
    return createVersions({
      service: temporal.service,
      withinDeadline: temporal.withinDeadline,
      namespace: config.temporal.namespace,
      version,
      taskQueue: deliverQueue,
      rollout: config.rollout,
      rampStepMs: config.rampStepMs,
      countTasks: () => readTaskCounts(coreMetrics ?? ''),
      onStopped: (isStopped) => {
        metrics.rampIsStopped.set(isStopped ? 1 : 0);
        if (isStopped)
          log.error({ own: version.buildId }, 'workflow tasks failed: this version takes no traffic any more');
      },
      onCurrent: ({ buildId, isOwn }) => {
        metrics.versionIsCurrent.set(isOwn ? 1 : 0);
        log.info({ current: buildId, own: version.buildId }, 'the current version of the workers');
      },
      onError: errorLogger(log, 'the current version could not be looked up or set; tried again soon'),
    });
  }

  return {
    async stop(): Promise<void> {
      for (const part of [repairs, redeliveries, relay, versions, temporalMetrics, temporal]) await part?.stop();
      connections.close();
    },
  };
}
