import { type Client, WorkflowNotFoundError } from '@temporalio/client';

/**
 * The state of a workflow. `waiting` has a timer, `busy` has work that a worker does or will do,
 * `ended` also means that it never existed. The others make no progress: `failing` has a workflow
 * task that fails each time, because its code throws or differs from the one that wrote the
 * history; `stranded` has a task that no worker will get.
 */
export type WorkflowStatus = 'ended' | 'busy' | 'waiting' | 'failing' | 'stranded';

/** A task of a workflow that Temporal has scheduled. */
export interface PendingTask {
  kind: 'workflow' | 'activity';
  taskQueue: string;
  /** From 1. A workflow task is retried until it succeeds. */
  attempt: number;
  isStarted: boolean;
  scheduledAtMs: number;
}

/** The state of a task queue. `backlogAgeMs` is the age of its oldest task, 0 without one. */
export interface QueueState {
  hasPollers: boolean;
  backlogAgeMs: number;
}

interface ProgressLimits {
  /** The attempt of a workflow task from which it counts as failing each time. */
  failingFromAttempt: number;
  /** How much older than its queue's backlog a scheduled task must be. */
  strandedAfterMs: number;
}

/**
 * Temporal retries a failed workflow task twice at once, then after 5 s and longer: the fifth
 * attempt is about 25 s after the first, in which a restarted worker would have carried it out.
 */
const failingFromAttempt = 5;

/**
 * Judges a running workflow by its pending tasks. A task that has not started is stranded when it
 * is overdue and no worker polls its queue, or when younger tasks are the oldest of its queue.
 */
export function judgeProgress(
  tasks: readonly PendingTask[],
  queueOf: (task: PendingTask) => QueueState,
  nowMs: number,
  limits: ProgressLimits,
): Exclude<WorkflowStatus, 'ended'> {
  if (tasks.length === 0) return 'waiting';
  const isFailing = ({ kind, attempt }: PendingTask) => kind === 'workflow' && attempt >= limits.failingFromAttempt;
  if (tasks.some(isFailing)) return 'failing';
  return tasks.some((task) => isStranded(task, queueOf, nowMs, limits)) ? 'stranded' : 'busy';
}

/** Returns whether a task is so old that its queue has to be checked. */
function isLate({ isStarted, scheduledAtMs }: PendingTask, nowMs: number, limits: ProgressLimits): boolean {
  return !isStarted && nowMs - scheduledAtMs > limits.strandedAfterMs;
}

function isStranded(
  task: PendingTask,
  queueOf: (task: PendingTask) => QueueState,
  nowMs: number,
  limits: ProgressLimits,
): boolean {
  if (!isLate(task, nowMs, limits)) return false;
  const { hasPollers, backlogAgeMs } = queueOf(task);
  return !hasPollers || nowMs - task.scheduledAtMs > backlogAgeMs + limits.strandedAfterMs;
}

/** Temporal's own numbers of the kinds of queues. */
export const taskQueueTypes = { workflow: 1, activity: 2 } as const;
const activityStarted = 2;
const workflowTaskStarted = 2;

type Timestamp = { seconds?: unknown; nanos?: number | null } | null | undefined;
export const toMs = (time: Timestamp): number => Number(time?.seconds ?? 0) * 1000 + (time?.nanos ?? 0) / 1e6;
type Description = Awaited<ReturnType<ReturnType<Client['workflow']['getHandle']>['describe']>>;

/** Lists the pending tasks in Temporal's description of a workflow. */
function listPendingTasks({ raw, taskQueue }: Description): PendingTask[] {
  const activities = (raw.pendingActivities ?? []).map(
    ({ attempt, state, scheduledTime, activityOptions }): PendingTask => ({
      kind: 'activity',
      attempt: attempt ?? 1,
      isStarted: state === activityStarted,
      taskQueue: activityOptions?.taskQueue?.name || taskQueue,
      scheduledAtMs: toMs(scheduledTime),
    }),
  );
  const task = raw.pendingWorkflowTask;
  if (!task) return activities;
  const { attempt, state, scheduledTime } = task;
  const isStarted = state === workflowTaskStarted;
  const scheduledAtMs = toMs(scheduledTime);
  return [...activities, { kind: 'workflow', taskQueue, attempt: attempt ?? 1, isStarted, scheduledAtMs }];
}

/** Asks Temporal for the state of a task's queue. */
async function findQueueState(client: Client, { kind, taskQueue }: PendingTask): Promise<QueueState> {
  const { pollers, stats } = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: taskQueue },
    taskQueueType: taskQueueTypes[kind],
    reportStats: true,
  });
  return { hasPollers: (pollers ?? []).length > 0, backlogAgeMs: toMs(stats?.approximateBacklogAge) };
}

/** Asks Temporal for the state of a workflow. `nowMs` is Unix time. */
export async function getWorkflowStatus(
  client: Client,
  workflowId: string,
  nowMs: number,
  strandedAfterMs: number,
): Promise<WorkflowStatus> {
  const limits = { failingFromAttempt, strandedAfterMs };
  let described: Description;
  try {
    described = await client.workflow.getHandle(workflowId).describe();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'ended';
    throw error;
  }
  if (described.status.name !== 'RUNNING') return 'ended';
  const tasks = listPendingTasks(described);
  const queues = new Map<PendingTask, QueueState>();
  for (const task of tasks) if (isLate(task, nowMs, limits)) queues.set(task, await findQueueState(client, task));
  return judgeProgress(tasks, (task) => queues.get(task) ?? { hasPollers: true, backlogAgeMs: 0 }, nowMs, limits);
}
