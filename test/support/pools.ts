import { availableParallelism } from 'node:os';

/**
 * Number of processes that run test files. On two cores a third process saves 6 % of the time and
 * leaves no idle time for tests that measure time. The connections of the run's PostgreSQL are
 * enough for four.
 */
export const poolSize = availableParallelism() > 2 ? 4 : 2;
