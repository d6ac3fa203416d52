/**
 * `npm test`: everything that fits into what every change must pass, against real servers that test/support/global-setup.ts brings up once.
 *
 * Decision (2026-11-22): a process runs one file after another, so that modules are loaded once and not 188 times: a third of the processor time of 60 files. A file puts back what it changes
 * of its process; what ends a process, or changes how it starts, is tested in a child. The aliases `#domain/*` and `#test/*` come from package.json, which Vite reads itself.
 */
import { defineConfig } from 'vitest/config';
import { compiledCode } from './apps/dev/prebuilt.ts';
import { LongestFirst } from './test/support/longest-first.ts';
import { poolSize } from './test/support/pools.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/bench/**', 'test/**/*.long.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    provide: { journeyScreens: ['wide'] },
    pool: 'forks',
    isolate: false,
    env: compiledCode,
    maxWorkers: poolSize,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
