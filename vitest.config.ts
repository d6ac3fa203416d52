/**
 * `npm test`: everything that fits into what every change must pass, against real servers that test/support/global-setup.ts brings up once.
 *
 * Decision (2026-11-20): workers are processes. A file may stop Redis or send itself signals without reaching its neighbours. The aliases `#domain/*` and `#test/*` come from package.json, which Vite reads itself.
 */
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';
import { poolSize } from './test/support/pools.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/bench/**', 'test/**/*.long.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    maxWorkers: poolSize,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
