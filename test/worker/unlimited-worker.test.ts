import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, type WorkerOptions } from '@temporalio/worker';
import { expect, inject, it, onTestFinished } from 'vitest';
import { UnlimitedWorker } from '../../apps/worker/relay/unlimited-worker.ts';
import { openTestTemporal } from '../support/temporal.ts';
import { testNamespace } from '../support/worker.ts';

it('workflow code runs without the SDK’s limit for each call into it', async () => {
  const { worker, start } = await openCounting();
  const times = 50_000_000;
  const counted = worker.runUntil(async () => (await start(times)).result());
  expect(await counted).toBe(times);
}, 90_000);

it('workflow code runs without a recorded stack for each promise', async () => {
  const { worker, start } = await openCounting();
  const asked = worker.runUntil(async () => {
    const handle = await start(1);
    await handle.result();
    await handle.query('__stack_trace');
  });
  await expect(asked).rejects.toThrow('stack traces are not enabled');
}, 90_000);

async function openCounting() {
  const connection = await NativeConnection.connect({ address: inject('temporalAddress') });
  onTestFinished(() => connection.close());
  const taskQueue = randomUUID();
  const options = {
    connection,
    namespace: testNamespace(),
    taskQueue,
    workflowBundle: await bundleWorkflowCode({
      workflowsPath: fileURLToPath(new URL('busy-workflow.ts', import.meta.url)),
      logger: new DefaultLogger('ERROR'),
    }),
    // The SDK does not document its limit, and reads it here.
    isolateExecutionTimeout: '1ms',
  };
  const worker = await UnlimitedWorker.create(options as WorkerOptions);
  const client = await openTestTemporal();
  const start = (times: number) =>
    client.workflow.start('count', {
      taskQueue,
      workflowId: taskQueue,
      args: [times],
      workflowTaskTimeout: '60s',
      workflowExecutionTimeout: '60s',
    });
  return { worker, start };
}
