import { createBudget } from '#runtime/budget.ts';

/**
 * Bounds the downloads in progress per person, organization and process. Each takes about 6 MB, and
 * no database connection while its browser reads. A download over the limit is refused at once.
 */
export const createDownloads = () =>
  createBudget<'person' | 'organization'>({
    limits: { person: 2, organization: 4, pod: 8 },
    maxWaiting: { each: 0, all: 0 },
    waitMs: 0,
  });

export type Downloads = ReturnType<typeof createDownloads>;
