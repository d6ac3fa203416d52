import { Refused } from '#domain/contract/refused.ts';

/** Why Temporal or a worker did not do what was asked. */
export type WorkflowRefusal = 'temporal_away' | 'no_worker' | 'old_worker';

/**
 * A refusal of what carries workflows out: `reason` for the program, `message` a sentence for the
 * person who asked.
 */
export class WorkflowRefused extends Refused<WorkflowRefusal> {}
