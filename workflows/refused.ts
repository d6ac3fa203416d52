import { Refused } from '#domain/contract/refused.ts';

/** Why Temporal or a worker did not carry out a request. */
type WorkflowRefusal = 'temporal_away' | 'no_worker';

export class WorkflowRefused extends Refused<WorkflowRefusal> {}
