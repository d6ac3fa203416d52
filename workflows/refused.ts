import { Refused } from '#domain/contract/refused.ts';

/** Why Temporal or a worker did not carry out a request. */
type WorkflowRefusal = 'temporal_away' | 'no_worker';

/**
 * A refusal of what carries workflows out: `reason` for programs, `message` a sentence for the
 * caller.
 */
export class WorkflowRefused extends Refused<WorkflowRefusal> {}
