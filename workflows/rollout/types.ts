/** Every type of a rollout that enters Temporal is here: names of builds, ids, counts. */

export interface RolloutInput {
  /** The Temporal worker deployment, one per region and release. */
  deploymentName: string;
  /** The build that takes over. */
  buildId: string;
  /** How long the build takes each share of the traffic before the next. */
  stepMs: number;
  /** How many open and how many closed histories of each workflow type are replayed. */
  sampleSize: number;
}

/**
 * The progress of a rollout. `replaying`: the new build replays histories, or has not started.
 * `held`: it ended, and the build before has all traffic.
 */
export interface RolloutProgress {
  buildId: string;
  state: 'replaying' | 'ramping' | 'current' | 'held';
  /** Why it is held; null unless it is. */
  reason: HoldReason | null;
  /** A sentence: why it is held, or what is in progress. */
  message: string;
  /** Share of the traffic, in percent. */
  percentage: number;
  /** Histories that replayed; null before that is known. */
  replayed: number | null;
  /** Histories that did not replay; null before that is known. */
  failed: number | null;
}

export type HoldReason = 'ReplayFailed' | 'TasksFailed' | 'Superseded' | 'Cancelled';

export interface ReplayResult {
  replayed: number;
  failed: number;
  /** The first history that did not replay; null: all did. */
  firstFailure: { workflowId: string; error: string } | null;
}

/** The builds that take traffic in a deployment; null: no build. */
export interface Routing {
  currentBuild: string | null;
  /** Whether workers of the current build poll. */
  isCurrentAlive: boolean;
  ramping: { buildId: string; percentage: number } | null;
}

/** Carried out by a worker of the build, on the queue `replayQueue`. */
export interface ReplayActivities {
  /** Replays a sample of the deployment's histories by this build's code. */
  replaySample(input: { sampleSize: number }): Promise<ReplayResult>;
}

/** Carried out by the operator. */
export interface RolloutActivities {
  readRouting(input: { deploymentName: string }): Promise<Routing>;
  /** Gives a build a share of the traffic, in percent; a null build ends the share. */
  setShare(input: { deploymentName: string; buildId: string | null; percentage: number }): Promise<void>;
  makeCurrent(input: { deploymentName: string; buildId: string }): Promise<void>;
  /** Records an Event that the rollout is held. */
  announceHold(input: { reason: HoldReason; message: string }): Promise<void>;
}

/** Queue of the operator's own worker. */
export const rolloutQueue = (deploymentName: string): string => `rollout/${deploymentName}`;

/** Queue on which the workers of a build replay histories. */
export const replayQueue = (deploymentName: string, buildId: string): string => `replay/${deploymentName}/${buildId}`;

/** The one rollout of a deployment. */
export const rolloutWorkflowId = (deploymentName: string): string => `rollout/${deploymentName}`;

/** Names of memo fields: how it stands, and what was asked for. */
export const progressMemo = 'progress';
export const requestMemo = 'request';
