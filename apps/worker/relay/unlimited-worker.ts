import { Worker as Thread } from 'node:worker_threads';
import { type CompiledWorkerOptions, type Logger, Worker } from '@temporalio/worker';
import { ThreadedVMWorkflowCreator, WorkerThreadClient } from '@temporalio/worker/lib/workflow/threaded-vm.js';
import type { Init } from '@temporalio/worker/lib/workflow/workflow-worker-thread/input.js';

/**
 * A worker that runs workflow code without two parts of the SDK's sandbox: the limit of 5 s for
 * each call, which costs a thread per call of microseconds (ADR 0116), and the stack that it
 * records for each promise (ADR 0135).
 */
export class UnlimitedWorker extends Worker {
  protected static override async createWorkflowCreator(
    workflowBundle: Init['workflowBundle'],
    { activities }: CompiledWorkerOptions,
    logger: Logger,
  ) {
    const thread = new WorkerThreadClient(new Thread(new URL('workflow-thread.ts', import.meta.url)), logger);
    const init: Omit<Init, 'isolateExecutionTimeoutMs'> = {
      type: 'init',
      workflowBundle,
      reuseV8Context: true,
      registeredActivityNames: new Set(activities.keys()),
      hasPatchActivationCallback: false,
    };
    await thread.send(init as Init);
    return new ThreadedVMWorkflowCreator([thread]);
  }
}
