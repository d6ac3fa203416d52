import type { Priority } from '@temporalio/common';

/**
 * Priorities of queued tasks (1 is first, 5 last, 3 is Temporal's default): first attempts for a
 * healthy webhook, then test events, at which a person waits, then everything
 * that was tried before or goes to a failing webhook.
 */
const firstAttemptPriority = 2;
const retryPriority = 4;

/**
 * Of a round's workflow and its first attempt: organizations share the queue evenly, however much
 * one of them has in it.
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

/** Of a retry; its organization is inherited from the workflow. */
export const priorityOfRetry: Priority = { priorityKey: retryPriority };
