import { expect, it } from 'vitest';
import type { RolloutProgress } from '#workflows/rollout/types.ts';
import type { ObservedRegion } from '../../apps/operator/region/observe.ts';
import { planRollout } from '../../apps/operator/region/rollout-plan.ts';
import type { RegionSpec } from '../../apps/operator/resources.ts';
import { quietRegion, regionWith } from './region.ts';

const rollout = { mode: 'Operator' as const, step: '1m30s', sampleSize: 20 };
const progressOf = (change: Partial<RolloutProgress>): RolloutProgress => ({
  buildId: 'b2',
  state: 'ramping',
  reason: null,
  message: '',
  percentage: 5,
  replayed: 1,
  failed: 0,
  ...change,
});
const before: ObservedRegion = { ...quietRegion, workers: { currentBuild: 'b1', ramping: null, builds: [] } };
const pending = { ...before.database, migrations: ['0001'] } as ObservedRegion['database'];
const failed = { ...before.database, failedMigration: { names: ['9999'], code: null } } as ObservedRegion['database'];
const away = { reason: 'TemporalUnreachable' as const, message: '' };
const newest = (isRunning: boolean, change: Partial<RolloutProgress> = {}, request = 'b2') => ({
  rollout: { isOpen: true, newest: { request, isRunning, progress: progressOf(change) } },
});
const isCurrent = { workers: { currentBuild: 'b2', ramping: null, builds: [] } };
const held = newest(false, { state: 'held', reason: 'ReplayFailed' });

it.each<[string, string[], Partial<ObservedRegion>, Partial<RegionSpec>?]>([
  ['starts the rollout of a new build', ['startRollout'], {}],
  ['starts the first rollout, before Temporal knows the deployment', ['startRollout'], { workers: null }],
  ['opens its worker first', ['openRollouts'], { rollout: { isOpen: false, newest: null } }],
  ['waits for the migrations', [], { database: pending }],
  ['waits after a failed migration', [], { database: failed }],
  ['waits while PostgreSQL is away', [], { database: away }],
  ['waits while Temporal is away', [], { workers: away, rollout: away }],
  ['waits while Temporal has no namespace', [], { temporal: null, rollout: { isOpen: false, newest: null } }],
  ['lets a rollout continue', [], newest(true)],
  [
    'lets a rollout continue while migrations of the next release are pending',
    [],
    { ...newest(true), database: pending },
  ],
  ['cancels the rollout of another build', ['cancelRollout'], newest(true, { buildId: 'b3' }, 'b3')],
  ['does not repeat a rollout that was held', [], held],
  [
    'tries a held build again when the spec says so',
    ['startRollout'],
    held,
    { workers: { rollout: { ...rollout, retry: '1' } } },
  ],
  [
    'rolls out the repaired build after one that was held',
    ['startRollout'],
    newest(false, { buildId: 'b3', state: 'held' }, 'b3'),
  ],
  ['repeats a rollout that was terminated', ['startRollout'], newest(false)],
  ['repeats a rollout that was reverted by hand', ['startRollout'], newest(false, { state: 'current' })],
  ['does nothing when the build is current', [], isCurrent],
  [
    'ends the share that a held build still has when the release returns to the current one',
    ['endShare'],
    { workers: { currentBuild: 'b2', ramping: { buildId: 'b3', percent: 0 }, builds: [] } },
  ],
  [
    'leaves the rollout to the workers',
    [],
    { rollout: null },
    { workers: { rollout: { ...rollout, mode: 'Worker' } } },
  ],
])('%s', (_, kindsOfActions, observed, spec = {}) => {
  const region = regionWith({ workers: { rollout }, ...spec });
  expect(planRollout(region, { ...before, ...observed }).map(({ kind }) => kind)).toEqual(kindsOfActions);
});

it('passes the steps and the sample of the spec', () => {
  expect(planRollout(regionWith({ workers: { rollout } }), before)).toEqual([
    {
      kind: 'startRollout',
      input: { deploymentName: 'org-api-us', buildId: 'b2', stepMs: 90_000, sampleSize: 20 },
    },
  ]);
});
