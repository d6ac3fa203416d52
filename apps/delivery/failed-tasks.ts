import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { getDirectly } from '#runtime/get-directly.ts';

const failedName = 'temporal_workflow_task_execution_failed';

/** Finds a free loopback port for the metrics of the SDK's core, which cannot choose one. */
export async function findLoopbackAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return `127.0.0.1:${port}`;
}

/**
 * Returns how many workflow tasks of this process failed since it started, from the metrics of the
 * SDK's core; only these include a failed replay.
 */
export async function countFailedTasks(address: string): Promise<number> {
  return parseFailedTasks((await getDirectly(`http://${address}/metrics`, 2_000)).text);
}

/** Adds up the failed workflow tasks of a page in Prometheus' format. */
export function parseFailedTasks(page: string): number {
  let failed = 0;
  for (const line of page.split('\n')) {
    const [, name = '', value = ''] = /^(\w+)\{.*\} ([0-9.e+]+)/.exec(line) ?? [];
    if (name === failedName || name === `${failedName}_total`) failed += Number(value);
  }
  return failed;
}
