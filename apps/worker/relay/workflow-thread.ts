/**
 * The thread that runs the workflow code of an {@link UnlimitedWorker}: the SDK's own, without the
 * promise hooks that record a stack for each promise. ADR 0135 says why.
 */
import { globalHandlers } from '@temporalio/worker/lib/workflow/vm-shared.js';
import '@temporalio/worker/lib/workflow/workflow-worker-thread.js';

// The SDK installs its hooks later, with the first message to this thread.
// biome-ignore lint/complexity/useLiteralKeys: TypeScript checks that the private method exists.
globalHandlers['setPromiseHook'] = () => {};
