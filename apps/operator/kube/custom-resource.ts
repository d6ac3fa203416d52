import type { Reason } from './reasons.ts';

/** Where the API server has objects of a kind. */
export interface ResourceKind {
  group: string;
  version: string;
  kind: string;
  plural: string;
}

export interface Metadata {
  name: string;
  namespace: string;
  uid: string;
  generation: number;
  resourceVersion: string;
  creationTimestamp: string;
  deletionTimestamp?: string;
  finalizers?: string[];
}

export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  observedGeneration?: number;
  lastTransitionTime: string;
}

/** A condition as `report` gives it; the runner adds generation and time. */
export type ReportedCondition = Omit<Condition, 'observedGeneration' | 'lastTransitionTime'> & { reason: Reason };

/** A Secret; each field that has one reads a fixed key of it. */
export interface SecretRef {
  name: string;
}

export interface CustomResource<Spec = unknown, Status = { conditions?: Condition[] }> {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
  spec: Spec;
  status?: Status;
}

/** What a controller found, in the fields of its status; conditions without generation and time. */
export type Report<R extends CustomResource> = Fields<
  Omit<NonNullable<R['status']>, 'conditions' | 'observedGeneration'>
> & { conditions: ReportedCondition[] };

/** A field that is undefined is left out, as JSON does. */
type Fields<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { [K in keyof T]?: Fields<T[K]> | undefined }
    : T;

/** What failed in a pass over an object. */
export interface Failure {
  /** As a condition shows it. */
  reason: Reason;
  /** A sentence without secrets. */
  message: string;
  /** Kind of the action that failed; undefined: none did. */
  action?: string | undefined;
}

/** Ends a pass with a reason that is shown in a condition. */
export class ReconcileError extends Error implements Failure {
  readonly reason: Reason;

  constructor(reason: Reason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ReconcileError';
    this.reason = reason;
  }
}

/** An Event about an object: a reason in one word and a sentence. */
export interface Note {
  reason: string;
  message: string;
}

/**
 * Brings objects of one kind to what their spec declares. The runner calls, for one object at a
 * time: `observe`, `plan`, `execute` for each action, `observe` again when there were any, and
 * `report`. Each call may be repeated at any point, because the process may end at any point.
 *
 * An object that is being deleted passes through the same functions while it has a finalizer.
 */
export interface Controller<R extends CustomResource, Observed, Action extends { kind: string }> {
  kind: ResourceKind;
  /** After how long an object is looked at again although nothing changed, also after failures. */
  resyncMs: number;
  /** Whether an action is carried out although one before it failed. */
  areActionsIndependent?: boolean;
  /** Reasons that are also recorded as an Event, once, when a condition takes them. */
  warnings?: readonly Reason[];
  /** Reads what is there and changes nothing. */
  observe(resource: R, signal: AbortSignal): Promise<Observed>;
  /** Returns what is left to do, in order; no effects, no clock. */
  plan(resource: R, observed: Observed): Action[];
  /** Carries out one action; safe to repeat. What it resolves to is not used. */
  execute(action: Action, resource: R, signal: AbortSignal): Promise<unknown>;
  /** Returns the Event of a finished action; null: none. */
  describe(action: Action): Note | null;
  /** Called when an object is gone: removes what is kept of it, with its metrics. */
  onGone?(): Promise<void>;
  /** Returns the status. No effects. `observed` is null when `observe` failed. */
  report(resource: R, observed: Observed | null, failures: readonly Failure[]): Report<R>;
}

/** A controller whose types matter to itself only. */
// biome-ignore lint/suspicious/noExplicitAny: the runner passes each value back to where it came from
export type AnyController = Controller<any, any, any>;

const unitSeconds = { h: 3_600, m: 60, s: 1 } as const;

/** Returns the seconds of a duration such as `1h30m`, whose form the API server has checked. */
export function readSeconds(duration: string): number {
  let seconds = 0;
  for (const [, count, unit] of duration.matchAll(/(\d+)([hms])/g))
    seconds += Number(count) * unitSeconds[unit as keyof typeof unitSeconds];
  return seconds;
}
