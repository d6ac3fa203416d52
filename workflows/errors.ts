import { DomainError } from '#domain/contract/domain-error.ts';

/** Why Temporal or a worker did not carry out a request. */
type WorkflowErrorReason = 'temporal_unavailable' | 'no_worker';

export class WorkflowError extends DomainError<WorkflowErrorReason> {}
