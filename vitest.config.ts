/**
 * Five projects share the servers that test/support/global-setup.ts brings up once per run:
 *
 * - `quick` (`npm test`): everything that takes seconds and needs PostgreSQL, Redis and Temporal only.
 *   `npm run lint` rejects a file of it that reaches for another tool.
 * - `system` (`npm run test:system`): whole processes, real browsers, faults, TLS, receivers in
 *   other languages, the rendered charts. `.ci/run` runs both.
 * - `long` (`npm run tool -- long`): minutes by size, and the console's journeys on a phone. Run it
 *   before a release.
 *
 * - `operator` and `operator-slow` (`npm run test:operator`): the operator against a real
 *   Kubernetes API server. `-- --quick` leaves out the second, which takes minutes.
 *
 * A file's suffix says which project it belongs to. One process runs many files, so that modules
 * load once: 188 files that loaded them one by one took a third more processor time. A file
 * restores what it changes in its process; what ends a process, or changes how it starts, is tested
 * in a child.
 */
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { compiledCode } from './apps/dev/compiled-code.ts';
import { poolSize } from './test/support/pools.ts';

const shared: TestProjectInlineConfiguration['test'] = {
  globalSetup: ['test/support/global-setup.ts'],
  setupFiles: ['test/support/guard-children.ts'],
  pool: 'forks',
  isolate: false,
  env: compiledCode,
  // Bounds against a test that hangs, never a judgement of speed: machines differ by a factor of
  // four.
  testTimeout: 120_000,
  hookTimeout: 180_000,
  expect: { poll: { timeout: 30_000 } },
};
const journeys = 'test/console/{audit-log,enrolment,keys,members,webhooks}.browser.test.ts';

export default defineConfig({
  test: {
    maxWorkers: poolSize,
    reporters: ['default', './test/support/retried-tests.ts'],
    projects: [
      {
        test: {
          ...shared,
          name: 'quick',
          include: ['test/**/!(*.system|*.browser|*.long|*.operator).test.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'system',
          include: ['test/**/*.{system,browser}.test.ts'],
          provide: { journeyScreens: ['wide'] },
        },
      },
      {
        test: {
          ...shared,
          name: 'operator',
          include: ['test/operator/*.operator.test.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'operator-slow',
          include: ['test/operator/slow/*.operator.test.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'long',
          include: ['test/**/*.long.test.ts', journeys],
          provide: { journeyScreens: ['phone'] },
        },
      },
    ],
  },
});
