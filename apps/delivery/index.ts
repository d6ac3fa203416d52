import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { Registry } from 'prom-client';
import type { Database } from '#domain/db/database.ts';
import type { SealingKeys } from '#domain/webhooks/seal.ts';
import { IntervalLoop } from '#runtime/flow/interval-loop.ts';
import { errorLogger, type Logger } from '#runtime/log.ts';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import type { Tracing } from '#runtime/tracing.ts';
import { isUnavailable } from '#workflows/connection.ts';
import { deliverQueue } from '#workflows/deliver-event/types.ts';
import { type AttemptLine, createAttempts } from './attempt.ts';
import { countFailedTasks } from './failed-tasks.ts';
import { createDeliveryMetrics, type DeliveryMetrics } from './metrics.ts';
import { waitUntilOnlyWorker } from './other-workers.ts';
import { redeliverPage } from './redelivery.ts';
import { Relay } from './relay.ts';
import { createRepairLoop } from './repair.ts';
import { createTestActivities } from './send-test.ts';
import { type AllowSettings, createSender } from './sender.ts';
import { openTemporal } from './temporal.ts';
import { createTemporalMetrics } from './temporal-metrics.ts';
import { redeliverEveryMs } from './times.ts';
import { createDeliveryTraces } from './traces.ts';
import { Trial } from './trial.ts';

interface DeliveryConfig extends AllowSettings {
  temporal: TemporalServer;
  webhookSecretKeys: SealingKeys;
  /** The waits of the schedule. */
  delaysMs: readonly number[];
  /** How late a run asks for its attempt before its delivery is queued for another one. */
  lateMs: number;
  /** How long the trial of a new process lasts; 0: it has none. */
  readyAfterMs: number;
  /** First attempts of runs that a process makes at once for healthy webhooks, and as many others. */
  workerSlots: number;
  /** Null: bundled when the worker starts. */
  workflowBundle: WorkflowBundleWithSourceMap | null;
}

interface DeliveriesOptions {
  config: DeliveryConfig;
  database: Database;
  registry: Registry;
  tracing: Tracing;
  log: Logger;
  /** host:port of the metrics of Temporal's core; only a trial needs them. */
  coreMetrics?: string | undefined;
}

/**
 * Starts the delivery of events: Temporal's worker with the attempts, the relay that starts runs,
 * and the loops that repair deliveries and redeliver ranges.
 *
 * Resolves when it runs or Temporal does not answer yet; events then wait in PostgreSQL. A failure
 * that a retry cannot repair (code that does not bundle) is unhandled: it ends the process.
 *
 * After a failed trial it delivers nothing, until no other worker has polled for two minutes: a
 * region without a worker would deliver nothing at all.
 */
export async function startDeliveries(options: DeliveriesOptions) {
  const { config, registry, log, coreMetrics } = options;
  const metrics = createDeliveryMetrics(registry);
  const stopping = new AbortController();
  const { signal } = stopping;
  let open: { stop(): Promise<void> } | null = null;
  let trial = startTrial(config.readyAfterMs);
  let running: Promise<void> = Promise.resolve();
  await new Promise<void>((found) => {
    running = openOnce(found).then(found, unlessStopped);
  });

  function unlessStopped(cause: unknown): void {
    if (!signal.aborted) throw cause;
  }

  async function openOnce(onProblem = () => {}): Promise<void> {
    const report = (problem: string) => {
      log.warn({ problem }, 'temporal');
      onProblem();
    };
    open = await openDeliveries({ ...options, metrics, trial, onProblem: report, signal });
    trial.start();
  }

  function startTrial(durationMs: number): Trial {
    return new Trial({
      durationMs,
      countFailedTasks: () => (coreMetrics === undefined ? Promise.resolve(0) : countFailedTasks(coreMetrics)),
      onFailed: (reason) => {
        metrics.isStopped.set(1);
        log.error({ reason }, 'an internal error before this worker was ready: it delivers nothing and stays unready');
        running = running.then(stopUntilOnlyWorker).catch(unlessStopped);
      },
      onError: errorLogger(log, 'failed workflow tasks could not be counted; tried again soon'),
    });
  }

  async function stopUntilOnlyWorker(): Promise<void> {
    await open?.stop();
    open = null;
    await waitUntilOnlyWorker({ server: config.temporal, queue: deliverQueue, signal, log });
    log.warn('no other worker has polled for two minutes: this one delivers again, without a trial');
    trial = startTrial(0);
    await openOnce();
    metrics.isStopped.set(0);
  }

  return {
    /** False until Temporal has answered, and after a failed trial. */
    isOpen: () => open !== null,
    /** Returns why the worker is not ready, or null. */
    findUnreadiness(): string | null {
      if (trial.state === 'failed') return 'stopped by an internal error before it was ready; the log says which';
      if (open === null) return 'Temporal has not answered yet; the log says what to do';
      return trial.state === 'passed' ? null : 'ready after 20 attempts without an internal error, or READY_AFTER';
    },
    /** Stops claiming, waits for attempts in progress, and closes in reverse order. */
    async stop(): Promise<void> {
      stopping.abort();
      await running; // it may still open, and start its trial
      await trial.stop();
      await open?.stop();
    },
  };
}

interface OpeningOptions extends DeliveriesOptions {
  metrics: DeliveryMetrics;
  trial: Trial;
  /** Called with a sentence: what prevents it from opening, or what is missing. */
  onProblem: (problem: string) => void;
  signal: AbortSignal;
}

/** Opens the parts from top to bottom. Rejects when `signal` aborts before Temporal answers. */
async function openDeliveries(options: OpeningOptions): Promise<{ stop(): Promise<void> }> {
  const { config, database, metrics, tracing, log, trial, onProblem, signal } = options;
  const { pool } = database; // for named statements: claims and attempts are the hot path
  const traces = createDeliveryTraces(tracing);
  const sender = createSender({ config, metrics, log, trial });
  // Attempts run as soon as Temporal is open, which the relay needs.
  let relay: Relay | null = null;
  const attempts = createAttempts({
    ...sender,
    pool,
    delaysMs: config.delaysMs,
    onStarted: (run) => relay?.attemptStarted(run),
    onEnded(run, next, line) {
      relay?.attemptEnded(run);
      if (line !== null) report(line, options);
      if (line !== null) traces.attempted(line);
      if (next?.kind === 'end') traces.ended(run, line);
    },
  });
  const temporal = await openTemporal({
    ...config.temporal,
    activities: { ...attempts, ...createTestActivities({ ...sender, database }) },
    workerSlots: config.workerSlots,
    bundle: config.workflowBundle,
    onProblem,
    signal,
  });
  const temporalMetrics = createTemporalMetrics({
    call: temporal.call,
    namespace: config.temporal.namespace,
    gauges: metrics.temporal,
    onError: errorLogger(log, 'Temporal did not answer about its queue; asked again soon'),
  });
  relay = new Relay({
    pool,
    startRun: temporal.startRun,
    isUnavailable,
    workerSlots: config.workerSlots,
    onClaimed: (deliveries) => metrics.claimed.inc(deliveries),
    onStarted: traces.started,
    onError: errorLogger(log, 'deliveries could not be claimed or started; tried again soon'),
  });
  const repairs = createRepairLoop({
    pool,
    delaysMs: config.delaysMs,
    lateMs: config.lateMs,
    drainDeleted: () => relay.drainDeleted(),
    onRepaired(repaired) {
      relay.wake();
      for (const row of repaired) {
        metrics.repaired.inc({ kind: row.kind });
        traces.lost(row);
      }
      log.warn({ deliveries: repaired.length }, 'slots or runs of deliveries were past their time: repaired');
    },
    onUnblocked: () => relay.wake(),
    onChanged: (how, deliveries) => metrics.moved.inc({ how }, deliveries),
    onError: errorLogger(log, 'deliveries could not be repaired or moved; tried again soon'),
  });
  const redeliveries = new IntervalLoop({
    async run(stopping) {
      while (!stopping.aborted && (await redeliverPage(database)));
    },
    everyMs: redeliverEveryMs,
    onError: errorLogger(log, 'a page of a redelivery failed; tried again soon'),
  });
  await temporalMetrics.start();
  relay.start();
  void repairs.start();
  void redeliveries.start();

  return {
    async stop(): Promise<void> {
      for (const part of [redeliveries, repairs, relay, temporalMetrics, temporal]) await part.stop();
    },
  };
}

/** Counts and logs an attempt. */
function report(line: AttemptLine, { metrics, log, trial }: OpeningOptions): void {
  const { timingsMs, startedAtMs, ...logged } = line;
  metrics.attempts.observe({ outcome: line.outcome, cause: line.cause }, timingsMs.total / 1000);
  if (line.number === 1)
    metrics.firstAttemptDelay.observe(Math.max(0, startedAtMs - uuidV7TimeMs(line.eventId)) / 1000);
  if (line.outcome === 'internal_error') metrics.internalErrors.inc({ cause: line.cause });
  else trial.countAttempt();
  log.info({ ...logged, durationMs: timingsMs.total }, 'attempt');
}

/** Returns the time of a UUID v7 (an event's id, made by the database) in ms since 1970. */
const uuidV7TimeMs = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
