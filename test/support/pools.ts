import { availableParallelism } from 'node:os';

/** How many test files run at once, each in a process of its own. Much of a file is waiting, so three keep two cores busy; four is what the connections of the run's one PostgreSQL are enough for. */
export const poolSize = availableParallelism() > 2 ? 4 : 3;
