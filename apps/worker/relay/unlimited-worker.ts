import { type CompiledWorkerOptions, type Logger, Worker } from '@temporalio/worker';

/**
 * A worker that runs workflow code without the SDK's limit of 5 s for each call into it.
 *
 * Node enforces such a limit with a thread that it starts and ends for each call. A delivery makes
 * about ten calls, of microseconds each. ADR 0116 has the figures, and says why the limit is
 * not needed.
 */
export class UnlimitedWorker extends Worker {
  // The SDK does not export the type of its bundle.
  protected static override createWorkflowCreator(bundle: never, options: CompiledWorkerOptions, logger: Logger) {
    const { isolateExecutionTimeoutMs: _, ...unlimited } = options;
    return Worker.createWorkflowCreator(bundle, unlimited as CompiledWorkerOptions, logger);
  }
}
