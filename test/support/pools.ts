import { availableParallelism } from 'node:os';

/**
 * How many processes run test files, one file after another. On two cores two leave a third of the time idle, as files wait for clocks and servers. Four is what the connections of
 * the run's one PostgreSQL are enough for.
 */
export const poolSize = availableParallelism() > 2 ? 4 : 3;
