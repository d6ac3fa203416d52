import { Budget, type Reservation } from '#runtime/flow/budget.ts';

/** Pages and forms of one person, and of one organization, that a process reads at a time. */
const pagesAtOnce = { organization: 4, person: 1 };

/** Connections that are left for sessions, updates of open pages and downloads. */
const otherConnections = 4;

/** How long a request waits in all, for its session and its share. */
export const waitMs = 5_000;

const maxWaiting = { each: 60, all: 500 };

/**
 * Divides the database among the requests of sessions, so that many requests of one session delay
 * another organization's by one page.
 */
export const createShares = (databasePoolMax: number) => ({
  /**
   * Admits one request of a session at a time, before its first statement: the session is looked up
   * only for a request that is read next. Holders are hashes of cookies, of a session or not.
   */
  sessions: new Budget<'session'>({ limits: { session: 1, process: Number.POSITIVE_INFINITY }, maxWaiting, waitMs }),

  /**
   * Divides the database's connections among pages and forms, when their person is known. Each runs
   * one statement at a time. More of them wait, and organizations take turns.
   */
  connections: new Budget<'organization' | 'person'>({
    limits: { ...pagesAtOnce, process: Math.max(1, databasePoolMax - otherConnections) },
    maxWaiting,
    waitMs,
  }),
});

export type Shares = ReturnType<typeof createShares>;

/** What a request of a session has reserved. */
export interface Share {
  session: Reservation;
  connection: Reservation;
}

/** Lets other requests use the share while this one waits for another system. */
export async function withoutShare<Result>(
  { share }: { share: Share | null },
  work: () => Promise<Result>,
): Promise<Result> {
  const resize = (amount: number) => {
    share?.connection.resize(amount);
    share?.session.resize(amount);
  };
  resize(0);
  try {
    return await work();
  } finally {
    resize(1);
  }
}
