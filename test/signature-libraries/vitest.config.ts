/**
 * `npm run tool -- receivers`: the receivers in all five languages. Java and Rust are not part of
 * `npm run test:system`, because their tools are rarely installed and slow to build. The servers are
 * those of `npm test`, so that a worker sends what is verified.
 */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['*.system.test.ts', '*.built.ts'],
    globalSetup: ['../support/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
  },
});
