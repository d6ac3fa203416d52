import { createServer } from 'node:net';
import { deliverQueue } from '#workflows/deliver-event/types.ts';

/** Workflow tasks that this process has completed since it started. */
export interface TaskCounts {
  completed: number;
  failed: number;
}

const failedName = 'temporal_workflow_task_execution_failed';
const executedName = 'temporal_workflow_task_execution_latency_count';

/** Finds a free loopback port for the metrics of the SDK's core, which cannot choose one. */
export function findLoopbackAddress(): Promise<string> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(`127.0.0.1:${port}`));
    });
  });
}

/** Reads the counts from the metrics of the SDK's core; only these include a failed replay. */
export async function readTaskCounts(address: string): Promise<TaskCounts> {
  const response = await fetch(`http://${address}/metrics`, { signal: AbortSignal.timeout(2_000) });
  return parseTaskCounts(await response.text());
}

/**
 * Adds up the counts of a page in Prometheus' format, of the workers' queue only: a replay for an
 * operator counts under another one.
 */
export function parseTaskCounts(page: string): TaskCounts {
  let executed = 0;
  let failed = 0;
  for (const line of page.split('\n')) {
    const [, name = '', labels = '', value = ''] = /^(\w+)\{(.*)\} ([0-9.e+]+)/.exec(line) ?? [];
    if (!labels.includes(`task_queue="${deliverQueue}"`)) continue;
    if (name === executedName) executed += Number(value);
    if (name === failedName || name === `${failedName}_total`) failed += Number(value);
  }
  return { completed: Math.max(0, executed - failed), failed };
}
