/** How a new version of the workers takes traffic: pure policies. */

/** The shares of traffic that a version takes before it becomes current, in percent. */
const shares = [5, 50] as const;
/** Workflow tasks without a failed one that end a step, unless its time ends it. */
const tasksPerStep = 50;

export interface RampState {
  own: string;
  /** Null when no version is current. */
  current: string | null;
  /** Whether workers of the current version poll. */
  isCurrentAlive: boolean;
  ramping: { buildId: string; percentage: number } | null;
  /** Whether this process has begun to ramp its version up, which it does once, or was current. */
  hasBegun: boolean;
  /** Workflow tasks of this process since the step began. */
  completedTasks: number;
  failedTasks: number;
  stepAgeMs: number;
}

/** `ramp` to 0 percent stops, until an operator decides or another version starts. */
export type RampAction = { kind: 'none' } | { kind: 'makeCurrent' } | { kind: 'ramp'; percentage: number };

const none: RampAction = { kind: 'none' };
const ramp = (percentage: number): RampAction => ({ kind: 'ramp', percentage });

/** Whether the version was stopped because of failed tasks. */
export const isStopped = ({ own, ramping }: Pick<RampState, 'own' | 'ramping'>): boolean =>
  ramping?.buildId === own && ramping.percentage === 0;

/** Decides the next step of a version. It takes over at once from none or from one that is gone. */
export function planRamp(state: RampState, { stepMs }: { stepMs: number }): RampAction {
  const { own, current, isCurrentAlive, ramping, hasBegun, completedTasks, failedTasks, stepAgeMs } = state;
  if (current === own) return none;
  if (current === null || !isCurrentAlive) return { kind: 'makeCurrent' };
  if (ramping?.buildId !== own) return hasBegun ? none : ramp(shares[0]);
  if (isStopped(state)) return none;
  if (failedTasks > 0) return ramp(0);
  if (completedTasks < tasksPerStep && stepAgeMs < stepMs) return none;
  const next = shares.find((share) => share > ramping.percentage);
  return next === undefined ? { kind: 'makeCurrent' } : ramp(next);
}

/** The input of the plan while an operator owns the rollout. */
export type OperatedState = Pick<RampState, 'own' | 'current' | 'isCurrentAlive' | 'ramping' | 'failedTasks'> & {
  /** For how long no worker of the current version has been seen; 0 while one is. */
  withoutCurrentMs: number;
};

/**
 * Decides the next step of a version while an operator owns the rollout. It ends its share when a
 * workflow task fails, also while the operator is away, and takes over when no worker of the
 * current version is left for `takeOverMs`: nothing else would do the work.
 */
export function planOperated(state: OperatedState, { takeOverMs }: { takeOverMs: number }): RampAction {
  const { own, current, isCurrentAlive, ramping, failedTasks, withoutCurrentMs } = state;
  if (current === own) return none;
  if ((current === null || !isCurrentAlive) && withoutCurrentMs >= takeOverMs) return { kind: 'makeCurrent' };
  const hasShare = ramping?.buildId === own && ramping.percentage > 0;
  return hasShare && failedTasks > 0 ? ramp(0) : none;
}
