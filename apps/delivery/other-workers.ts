import { setTimeout as sleep } from 'node:timers/promises';
import { describeError, type Logger } from '#runtime/log.ts';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import { connectToTemporal } from './connect-temporal.ts';
import { taskQueueTypes, toMs } from './temporal-metrics.ts';

interface OnlyWorkerOptions {
  server: TemporalServer;
  /** The task queue whose pollers count. */
  queue: string;
  /** After how long without a poll a worker counts as gone. Temporal forgets it after 5 minutes. */
  goneAfterMs?: number;
  checkEveryMs?: number;
  signal: AbortSignal;
  log: Logger;
}

/**
 * Resolves when no worker has polled the queue for `goneAfterMs`, this process included. An error
 * of Temporal is logged, and it is asked again.
 *
 * @throws the signal's reason when that aborts.
 */
export async function waitUntilOnlyWorker(options: OnlyWorkerOptions): Promise<void> {
  const { server, queue, goneAfterMs = 300_000, checkEveryMs = 10_000, signal, log } = options;
  const onProblem = (problem: string) => log.warn({ problem }, 'temporal');
  const connection = await connectToTemporal({ server, signal, onProblem });
  if (connection === null) throw signal.reason;
  const request = { namespace: server.namespace, taskQueue: { name: queue }, taskQueueType: taskQueueTypes.workflow };
  try {
    for (;;) {
      await sleep(checkEveryMs, undefined, { signal });
      const described = await connection.workflowService.describeTaskQueue(request).catch((cause: unknown) => {
        log.warn({ error: describeError(cause) }, 'Temporal did not answer about its pollers; asked again soon');
        return null;
      });
      const isPolled = (described?.pollers ?? []).some(
        ({ lastAccessTime }) => Date.now() - toMs(lastAccessTime) < goneAfterMs,
      );
      if (described !== null && !isPolled) return;
    }
  } finally {
    await connection.close();
  }
}
