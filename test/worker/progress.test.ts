import { expect, it } from 'vitest';
import { judgeProgress, type PendingTask, type QueueState } from '../../apps/worker/relay/progress.ts';

const nowMs = 10_000_000;
const limits = { failingFromAttempt: 5, strandedAfterMs: 60_000 };
const task = (kind: PendingTask['kind'], ageMs: number, changed: Partial<PendingTask> = {}): PendingTask => ({
  kind,
  taskQueue: 'deliver-slow',
  attempt: 1,
  isStarted: false,
  scheduledAtMs: nowMs - ageMs,
  ...changed,
});
const served: QueueState = { hasPollers: true, backlogAgeMs: 0 };

it.each([
  ['waiting', 'it has no task', [], served],
  ['busy', 'its task is young', [task('activity', 59_000)], { hasPollers: false, backlogAgeMs: 0 }],
  ['busy', 'a worker has its task', [task('activity', 600_000, { isStarted: true })], served],
  ['busy', 'tasks as old wait in its queue', [task('activity', 600_000)], { hasPollers: true, backlogAgeMs: 590_000 }],
  ['busy', 'an activity is tried for the ninth time', [task('activity', 100, { attempt: 9 })], served],
  ['busy', 'a workflow task failed three times', [task('workflow', 100, { attempt: 4 })], served],
  ['failing', 'a workflow task failed four times', [task('workflow', 100, { attempt: 5 })], served],
  ['failing', 'and a worker has it', [task('workflow', 100, { attempt: 5, isStarted: true })], served],
  ['stranded', 'only younger tasks wait in its queue', [task('activity', 600_000)], served],
  ['stranded', 'no worker polls its queue', [task('activity', 61_000)], { hasPollers: false, backlogAgeMs: 61_000 }],
  ['stranded', 'a workflow task is lost', [task('workflow', 600_000)], served],
  ['busy', 'it will be tried again later', [task('activity', -5_000, { attempt: 3 })], served],
] as const)('a workflow is %s when %s', (status, _, tasks, queue) => {
  expect(judgeProgress(tasks, () => queue, nowMs, limits)).toBe(status);
});
