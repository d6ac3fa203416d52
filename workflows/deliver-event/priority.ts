import type { Priority } from '@temporalio/common';

/**
 * Priorities of queued tasks (1 is first, 5 last, 3 is Temporal's default): first attempts for a
 * healthy webhook, then test events, for which a person waits, then retries and attempts for a
 * failing webhook.
 */
const firstAttemptPriority = 2;
const retryPriority = 4;

/**
 * Returns the priority of a round's workflow and its first attempt. Organizations share the queue
 * evenly, whatever number of tasks each has.
 */
export function priorityOfRound(round: {
  organizationId: string;
  round: number;
  slow: boolean;
}): Required<Pick<Priority, 'fairnessKey' | 'priorityKey'>> {
  return {
    fairnessKey: round.organizationId,
    priorityKey: round.round === 1 && !round.slow ? firstAttemptPriority : retryPriority,
  };
}

/** The priority of a retry; its organization is inherited from the workflow. */
export const priorityOfRetry: Priority = { priorityKey: retryPriority };
