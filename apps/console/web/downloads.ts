import { Budget } from '#runtime/flow/budget.ts';

/**
 * Bounds the downloads in progress per person, organization and process. Each holds
 * no database connection while its browser reads. One over the limit waits for a second, in which
 * its session waits too, so that error responses are few.
 */
export const createDownloads = () =>
  new Budget<'organization' | 'person'>({
    limits: { organization: 4, person: 1, process: 8 },
    maxWaiting: { each: 4, all: 100 },
    waitMs: 1_000,
  });

export type Downloads = ReturnType<typeof createDownloads>;
