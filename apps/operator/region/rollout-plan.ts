import { currentMigration } from '#domain/db/migrations/index.ts';
import type { RegionState } from '#domain/db/statements/region-state.ts';
import type { RolloutInput } from '#workflows/rollout/types.ts';
import { readSeconds } from '../duration.ts';
import type { Region } from '../resources.ts';
import { isUnreadable, type ObservedRegion } from './observe.ts';
import { requestOf } from './rollouts.ts';

export type RolloutAction =
  | { kind: 'openRollouts' }
  | { kind: 'cancelRollout' }
  | { kind: 'endShare' }
  | { kind: 'startRollout'; input: RolloutInput };

/**
 * Returns what is left to do for a region whose workers the operator rolls out. A rollout starts
 * when the schema is current, once for each release. What could not be read stops everything.
 */
export function planRollout(region: Region, observed: ObservedRegion): RolloutAction[] {
  const { workers: spec, release, temporal } = region.spec;
  const { database, temporal: namespace, workers, rollout } = observed;
  const buildId = release.buildId;
  if (spec?.rollout?.mode !== 'Operator' || buildId === undefined || temporal.deployment === undefined) return [];
  if (rollout === null || isUnreadable(rollout) || isUnreadable(workers) || namespace === null) return [];
  if (!rollout.isOpen) return [{ kind: 'openRollouts' }];
  const { newest } = rollout;
  if (newest?.isRunning && newest.progress.buildId !== buildId) return [{ kind: 'cancelRollout' }];
  if (newest?.isRunning) return [];
  if (workers?.currentBuild === buildId) return workers.ramping === null ? [] : [{ kind: 'endShare' }];
  if (isUnreadable(database) || !isSchemaCurrent(database)) return [];
  if (newest?.request === requestOf(region) && newest.progress.state === 'held') return [];
  const { step, sampleSize } = spec.rollout;
  const input = { deploymentName: temporal.deployment, buildId, stepMs: readSeconds(step) * 1_000, sampleSize };
  return [{ kind: 'startRollout', input }];
}

/** Whether every expand migration is applied. A pending contract migration is no failure. */
export const isSchemaCurrent = ({ failedMigration, migrations }: RegionState): boolean =>
  failedMigration === null && migrations.includes(currentMigration);
