import type { NativeConnection } from '@temporalio/worker';
import type { Registry } from 'prom-client';
import { createIntervalLoop } from '#runtime/interval-loop.ts';
import { metricsIn } from '#runtime/metrics.ts';
import { deliverQueue, deliverSlowQueue } from '#workflows/deliver-event/types.ts';
import { taskQueueTypes, toMs } from './progress.ts';

const queues = [deliverQueue, deliverSlowQueue] as const;

/**
 * Shows the backlog of the queues of deliveries by queue and kind, and when Temporal last answered.
 * A run that fails leaves the figures unchanged, so that their age shows it, and calls `onError`.
 */
export function createTemporalMetrics(options: {
  service: Pick<NativeConnection['workflowService'], 'describeTaskQueue'>;
  namespace: string;
  registry: Registry;
  everyMs?: number;
  onError: (cause: unknown) => void;
}) {
  const { service, namespace, registry, everyMs = 15_000, onError } = options;
  const { gauge } = metricsIn(registry);
  const answeredAt = gauge(
    'org_api_temporal_answered_timestamp_seconds',
    'When Temporal last answered this worker about its queues; 0 when it never has.',
  );
  const tasks = gauge(
    'org_api_queue_backlog_tasks',
    'Tasks that wait in Temporal for a worker, as it estimates them.',
    'queue',
    'kind',
  );
  const age = gauge(
    'org_api_queue_backlog_age_seconds',
    'How long the oldest task has waited in Temporal for a worker; 0 when none waits.',
    'queue',
    'kind',
  );

  async function ask(): Promise<void> {
    for (const queue of queues)
      for (const kind of Object.keys(taskQueueTypes) as (keyof typeof taskQueueTypes)[]) await read(queue, kind);
    answeredAt.setToCurrentTime();
  }

  async function read(queue: string, kind: keyof typeof taskQueueTypes): Promise<void> {
    const { stats } = await service.describeTaskQueue({
      namespace,
      taskQueue: { name: queue },
      taskQueueType: taskQueueTypes[kind],
      reportStats: true,
    });
    tasks.set({ queue, kind }, Number(stats?.approximateBacklogCount ?? 0));
    age.set({ queue, kind }, toMs(stats?.approximateBacklogAge) / 1_000);
  }

  return createIntervalLoop({ run: ask, everyMs, onError });
}
