import type { WorkflowService } from '@temporalio/client';
import type { Registry } from 'prom-client';
import { IntervalLoop } from '#runtime/flow/interval-loop.ts';
import { metricsIn } from '#runtime/metrics.ts';
import { deliverQueue } from '#workflows/deliver-event/types.ts';

/** Temporal's own numbers of the kinds of tasks. */
export const taskQueueTypes = { workflow: 1, activity: 2 } as const;

type Timestamp = { seconds?: unknown; nanos?: number | null } | null | undefined;
/** Returns a time or a duration of Temporal's API in milliseconds. */
export const toMs = (time: Timestamp): number => Number(time?.seconds ?? 0) * 1000 + (time?.nanos ?? 0) / 1e6;

/** Creates the gauges, once a process: it may open Temporal again. */
export function createTemporalGauges(registry: Registry) {
  const { gauge } = metricsIn(registry);
  return {
    answeredAt: gauge(
      'org_api_temporal_answered_timestamp_seconds',
      'When Temporal last answered this worker about its queues; 0 when it never has.',
    ),
    tasks: gauge(
      'org_api_queue_backlog_tasks',
      'Tasks that wait in Temporal for a worker, as it estimates them.',
      'kind',
    ),
    age: gauge(
      'org_api_queue_backlog_age_seconds',
      'How long the oldest task has waited in Temporal for a worker; 0 when none waits.',
      'kind',
    ),
  };
}

/**
 * Shows the backlog of the queue of deliveries by kind of task, and when Temporal last answered.
 * A run that fails leaves the figures unchanged, so that their age shows it, and calls `onError`.
 */
export function createTemporalMetrics(options: {
  /** Calls Temporal within a deadline. */
  call: <Result>(send: (service: Pick<WorkflowService, 'describeTaskQueue'>) => Promise<Result>) => Promise<Result>;
  namespace: string;
  gauges: ReturnType<typeof createTemporalGauges>;
  everyMs?: number;
  onError: (cause: unknown) => void;
}) {
  const { call, namespace, gauges, everyMs = 15_000, onError } = options;
  const { answeredAt, tasks, age } = gauges;

  async function ask(): Promise<void> {
    for (const kind of Object.keys(taskQueueTypes) as (keyof typeof taskQueueTypes)[]) await read(kind);
    answeredAt.setToCurrentTime();
  }

  async function read(kind: keyof typeof taskQueueTypes): Promise<void> {
    const taskQueue = { name: deliverQueue };
    const request = { namespace, taskQueue, taskQueueType: taskQueueTypes[kind], reportStats: true };
    const { stats } = await call((service) => service.describeTaskQueue(request));
    tasks.set({ kind }, Number(stats?.approximateBacklogCount ?? 0));
    age.set({ kind }, toMs(stats?.approximateBacklogAge) / 1_000);
  }

  return new IntervalLoop({ run: ask, everyMs, onError });
}
