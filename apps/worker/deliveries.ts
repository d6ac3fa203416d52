import type { Pool } from 'pg';
import { errorLogger, type Logger } from '#runtime/log.ts';
import type { Tracing } from '#runtime/tracing.ts';
import { isAway } from '#workflows/connection.ts';
import { deliverQueue } from '#workflows/deliver-event/types.ts';
import { createActivities } from './activities.ts';
import type { WorkerConfig } from './config.ts';
import { createDeliveryTraces } from './delivery-traces.ts';
import { countFailedTasks } from './failed-tasks.ts';
import type { Metrics } from './metrics.ts';
import { waitUntilAlone } from './relay/other-workers.ts';
import { createRedeliveryStarter } from './relay/redeliveries.ts';
import { createRelay } from './relay/relay.ts';
import { createRepairs } from './relay/repairs.ts';
import { openTemporal } from './relay/temporal.ts';
import { createTemporalMetrics } from './relay/temporal-metrics.ts';
import { Trial } from './trial.ts';

interface DeliveriesOptions {
  config: WorkerConfig;
  pool: Pool;
  metrics: Metrics;
  tracing: Tracing;
  log: Logger;
  /** host:port of the metrics of Temporal's core; only a trial needs them. */
  coreMetrics?: string | undefined;
}

/**
 * The delivery part of the worker: Temporal's workers with the activities, the relay that starts
 * workflows, and the repairs.
 *
 * Resolves when it runs or Temporal does not answer yet; events then wait in PostgreSQL. A failure
 * that a retry cannot repair (code that does not bundle) is unhandled on purpose: it ends the
 * process, which Kubernetes restarts.
 *
 * After a failed trial it delivers nothing, until no other worker has polled for five minutes: a
 * region without a worker would deliver nothing at all.
 */
export async function startDeliveries(options: DeliveriesOptions) {
  const { config, metrics, log, coreMetrics } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  let open: { stop(): Promise<void> } | null = null;
  let trial = startTrial(config.readyAfterMs);
  let running: Promise<void> = Promise.resolve();
  await new Promise<void>((found) => {
    const onProblem = (problem: string) => {
      log.warn({ problem }, 'temporal');
      found();
    };
    running = openOnce(onProblem).then(found, (cause: unknown) => {
      if (!signal.aborted) throw cause;
    });
  });

  async function openOnce(onProblem: (problem: string) => void): Promise<void> {
    open = await openDeliveries(options, { trial, onProblem, signal });
    trial.start();
  }

  function startTrial(durationMs: number): Trial {
    return new Trial({
      durationMs,
      countFailedTasks: () => (coreMetrics === undefined ? Promise.resolve(0) : countFailedTasks(coreMetrics)),
      onFailed: (reason) => {
        metrics.isStopped.set(1);
        log.error({ reason }, 'an internal error before this worker was ready: it delivers nothing and stays unready');
        running = running.then(stopUntilAlone).catch((cause: unknown) => {
          if (!signal.aborted) throw cause;
        });
      },
      onError: errorLogger(log, 'failed workflow tasks could not be counted; tried again soon'),
    });
  }

  async function stopUntilAlone(): Promise<void> {
    await open?.stop();
    open = null;
    await waitUntilAlone({ server: config.temporal, queue: deliverQueue, signal, log });
    log.warn('no other worker has polled for five minutes: this one delivers again, without a trial');
    trial = startTrial(0);
    await openOnce((problem) => log.warn({ problem }, 'temporal'));
    metrics.isStopped.set(0);
  }

  return {
    /** False until Temporal has answered, and after a failed trial. */
    isOpen: () => open !== null,
    /** Returns why the worker is not ready, or null. */
    findUnreadiness(): string | null {
      if (trial.state === 'failed') return 'stopped by an internal error before it was ready; the log says which';
      if (open === null) return 'Temporal has not answered yet; the log says what to do';
      return trial.state === 'passed' ? null : 'ready after 20 deliveries or READY_AFTER without an internal error';
    },
    /** Stops claiming, waits for attempts in progress, and closes in reverse order. */
    async stop(): Promise<void> {
      stopping.abort();
      await trial.stop();
      await running;
      await open?.stop();
    },
  };
}

interface OpeningOptions {
  trial: Trial;
  /** Called with a sentence: what prevents it from opening, or what is missing. */
  onProblem: (problem: string) => void;
  signal: AbortSignal;
}

/** Opens the parts from top to bottom. Rejects when `signal` aborts before Temporal answers. */
async function openDeliveries(
  { config, pool, metrics, tracing, log }: DeliveriesOptions,
  { trial, onProblem, signal }: OpeningOptions,
): Promise<{ stop(): Promise<void> }> {
  const traces = createDeliveryTraces(tracing);
  // Activities run as soon as Temporal is open, which the relay needs.
  let relay: ReturnType<typeof createRelay> | null = null;
  const wakeRelay = () => relay?.wake();
  const temporal = await openTemporal({
    ...config.temporal,
    activities: createActivities({ config, pool, metrics, traces, log, trial, onAttemptEnded: wakeRelay }),
    delaysMs: config.delaysMs,
    strandedAfterMs: config.reconcileAfterMs,
    promptSlots: config.promptSlots,
    slowSlots: config.slowSlots,
    bundle: config.workflowBundle,
    onRoundEnded: traces.ended,
    onProblem,
    signal,
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

  return {
    async stop(): Promise<void> {
      for (const part of [repairs, redeliveries, relay, temporalMetrics, temporal]) await part.stop();
    },
  };
}
