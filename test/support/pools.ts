import { availableParallelism } from 'node:os';

/**
 * Number of processes that run test files: one more than two cores, because many files wait for
 * deadlines most of their time. The connections of the run's PostgreSQL are enough for four.
 */
export const poolSize = availableParallelism() > 2 ? 4 : 3;
