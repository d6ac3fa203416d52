import { availableParallelism } from 'node:os';

/**
 * How many processes run test files, one file after another. On two cores a third takes 6 % off the
 * whole and leaves nothing idle for tests that measure time. The connections of the run's one
 * PostgreSQL are enough for four.
 */
export const poolSize = availableParallelism() > 2 ? 4 : 2;
