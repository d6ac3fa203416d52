import { randomBytes } from 'node:crypto';
import { Client, Connection, type WorkflowService } from '@temporalio/client';
import { type Duration, msToTs } from '@temporalio/common/lib/time.js';
import { inject, onTestFinished, vi } from 'vitest';
import { deliverQueue } from '#workflows/deliver-event/types.ts';
import type { OnFinished } from './setup.ts';
import { testNamespace } from './worker.ts';

/** A client of this test process's namespace, closed when the test, or what `onFinished` names, ends. */
export async function openTestTemporal(onFinished: OnFinished = onTestFinished): Promise<Client> {
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  onFinished(() => connection.close());
  return new Client({ connection, namespace: testNamespace() });
}

/** Registers a namespace, and resolves when the server answers for its task queues. */
export async function registerNamespace(
  workflowService: WorkflowService,
  namespace: string,
  retention: Duration = '1 day',
): Promise<void> {
  await workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: msToTs(retention) });
  const queue = { namespace, taskQueue: { name: deliverQueue } };
  await vi.waitFor(() => workflowService.describeTaskQueue(queue), { timeout: 120_000, interval: 100 });
}

/** Registers a namespace for one test, named after `prefix`. */
export async function makeNamespace(prefix: string): Promise<string> {
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const namespace = `${prefix}-${randomBytes(4).toString('hex')}`;
  await registerNamespace(connection.workflowService, namespace).finally(() => connection.close());
  return namespace;
}
