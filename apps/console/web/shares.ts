import { createBudget, type Hold } from '#runtime/budget.ts';

/** Pages and forms of one person, and of one organization, that a process answers at a time. */
const pagesAtOnce = { person: 2, organization: 4 };

/** Connections that are left for sessions, updates of open pages and downloads. */
const otherConnections = 4;

/**
 * Divides the database's connections among pages and forms. Each runs one statement at a time. More
 * of them wait, and organizations take turns, so that many requests of one session delay another
 * organization's by one page.
 */
export const createShares = (databasePoolMax: number) =>
  createBudget<'organization' | 'person'>({
    limits: { ...pagesAtOnce, pod: Math.max(1, databasePoolMax - otherConnections) },
    maxWaiting: { each: 60, all: 500 },
    waitMs: 5_000,
  });

export type Shares = ReturnType<typeof createShares>;

/** Lets other requests use the share while this one waits for another system. */
export async function withoutShare<Result>(
  { share }: { share: Hold | null },
  work: () => Promise<Result>,
): Promise<Result> {
  share?.resize(0);
  try {
    return await work();
  } finally {
    share?.resize(1);
  }
}
