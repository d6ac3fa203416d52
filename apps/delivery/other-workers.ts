import { setTimeout as sleep } from 'node:timers/promises';
import { describeError, type Logger } from '#runtime/log.ts';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import { connectToTemporal } from './connect-temporal.ts';
import { taskQueueTypes, toMs } from './temporal-metrics.ts';

interface OnlyWorkerOptions {
  server: TemporalServer;
  /** The task queue whose pollers count. */
  queue: string;
  /** After how long without a poll no other worker is left: a worker polls again after a minute at most. */
  goneAfterMs?: number;
  checkEveryMs?: number;
  signal: AbortSignal;
  log: Logger;
}

/**
 * Resolves when no worker has polled the queue for `goneAfterMs`, as watched by this process, which
 * does not poll meanwhile.
 *
 * @throws the signal's reason when that aborts.
 */
export async function waitUntilOnlyWorker({ server, queue, ...options }: OnlyWorkerOptions): Promise<void> {
  const { signal, log } = options;
  const onProblem = (problem: string) => log.warn({ problem }, 'temporal');
  const connection = await connectToTemporal({ server, signal, onProblem });
  if (connection === null) throw signal.reason;
  const request = { namespace: server.namespace, taskQueue: { name: queue }, taskQueueType: taskQueueTypes.workflow };
  const findLastPoll = async () => {
    const { pollers } = await connection.workflowService.describeTaskQueue(request);
    return Math.max(0, ...pollers.map(({ lastAccessTime }) => toMs(lastAccessTime)));
  };
  try {
    await waitForQuiet(findLastPoll, options);
  } finally {
    await connection.close();
  }
}

/**
 * Waits until `findLastPoll`, which returns when a worker last polled (Unix, ms; 0: unknown), has
 * returned nothing later for `goneAfterMs`. Temporal that restarted lists no poller for a while, and
 * clocks may differ: so it counts whether polls continue, not what one look says. An error of
 * Temporal is logged, and the time begins again.
 */
export async function waitForQuiet(
  findLastPoll: () => Promise<number>,
  { goneAfterMs = 120_000, checkEveryMs = 10_000, signal, log }: Omit<OnlyWorkerOptions, 'server' | 'queue'>,
): Promise<void> {
  let [lastPoll, quietSince] = [0, performance.now()];
  while (performance.now() - quietSince < goneAfterMs) {
    await sleep(checkEveryMs, undefined, { signal });
    const found = await findLastPoll().catch((cause: unknown) => {
      log.warn({ error: describeError(cause) }, 'Temporal did not answer about its pollers; asked again soon');
      return null;
    });
    if (found === null || found > lastPoll) quietSince = performance.now();
    lastPoll = Math.max(lastPoll, found ?? 0);
  }
}
