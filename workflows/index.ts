/**
 * Everything that a worker bundles. Workflow code is replayed: it is deterministic, and imports
 * only the SDK, pure files and types. Module scope has constants only, because all workflows of a
 * worker share it.
 */
export { deliverEvent } from './deliver-event/workflow.ts';
export { redeliver } from './redeliver/workflow.ts';
export { rolloutWorkers } from './rollout/workflow.ts';
export { sendTest } from './send-test/workflow.ts';
