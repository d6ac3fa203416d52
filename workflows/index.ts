/**
 * Everything that a worker bundles. Workflow code is replayed: it is deterministic, and imports
 * only the SDK, pure files and types. All workflows of a worker share module scope, so it has
 * constants only.
 */
export { deliverEvent } from './deliver-event/workflow.ts';
export { sendTest } from './send-test/workflow.ts';
