import { availableParallelism } from 'node:os';

/**
 * How many test files run at once, each in a process of its own. Two keep two cores busy: three took each file 1.4 times as long, for 7 % in all. Four is what the connections of the run's
 * one PostgreSQL are enough for.
 */
export const poolSize = availableParallelism() > 2 ? 4 : 2;
