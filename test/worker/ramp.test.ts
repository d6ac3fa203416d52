import { expect, it } from 'vitest';
import { type OperatedState, planOperated, planRamp, type RampState } from '../../apps/worker/relay/ramp.ts';
import { parseTaskCounts } from '../../apps/worker/relay/task-counts.ts';

const begun: RampState = {
  own: 'b',
  current: 'a',
  isCurrentAlive: true,
  ramping: { buildId: 'b', percentage: 5 },
  hasBegun: true,
  completedTasks: 0,
  failedTasks: 0,
  stepAgeMs: 0,
};
const at = (percentage: number) => ({ ramping: { buildId: 'b', percentage } });
const none = { kind: 'none' };
const makeCurrent = { kind: 'makeCurrent' };
const ramp = (percentage: number) => ({ kind: 'ramp', percentage });

it.each<[string, Partial<RampState>, object]>([
  ['becomes current at once when none is', { current: null, ramping: null, hasBegun: false }, makeCurrent],
  ['becomes current at once when the workers of the current one are gone', { isCurrentAlive: false }, makeCurrent],
  ['and even when it was stopped, as nothing else works', { isCurrentAlive: false, ...at(0) }, makeCurrent],
  ['begins with 5 percent', { ramping: null, hasBegun: false }, ramp(5)],
  [
    'takes the ramp over from another that has stopped',
    { ramping: { buildId: 'c', percentage: 50 }, hasBegun: false },
    ramp(5),
  ],
  ['leaves the ramp to a newer one', { ramping: { buildId: 'c', percentage: 5 } }, none],
  ['waits for work', { completedTasks: 49, stepAgeMs: 29_000 }, none],
  ['continues when enough tasks succeeded', { completedTasks: 50 }, ramp(50)],
  ['continues when the time has ended with little work', { completedTasks: 1, stepAgeMs: 30_000 }, ramp(50)],
  ['becomes current after 50 percent', { ...at(50), completedTasks: 50 }, makeCurrent],
  ['stops at one failed task, whatever succeeded', { ...at(50), completedTasks: 900, failedTasks: 1 }, ramp(0)],
  ['stays stopped', { ...at(0), completedTasks: 900, stepAgeMs: 900_000 }, none],
  ['does nothing once it is current', { current: 'b', ramping: null }, none],
])('a new version %s', (_, changed, action) => {
  expect(planRamp({ ...begun, ...changed }, { stepMs: 30_000 })).toEqual(action);
});

const operated: OperatedState = { ...begun, withoutCurrentMs: 0 };

it.each<[string, Partial<OperatedState>, object]>([
  ['begins no ramp', { ramping: null }, none],
  ['leaves the next step to the operator', at(5), none],
  ['ends its share at one failed task, also while the operator is away', { ...at(5), failedTasks: 1 }, ramp(0)],
  ['stays stopped', { ...at(0), failedTasks: 1 }, none],
  ['does not end the share of another build', { ramping: { buildId: 'c', percentage: 5 }, failedTasks: 1 }, none],
  ['waits for the operator when no build is current', { current: null, withoutCurrentMs: 59_000 }, none],
  ['takes over when no build has been current for long', { current: null, withoutCurrentMs: 60_000 }, makeCurrent],
  ['takes over from workers that are gone for long', { isCurrentAlive: false, withoutCurrentMs: 60_000 }, makeCurrent],
  ['does nothing once it is current', { current: 'b', failedTasks: 1 }, none],
])('a version that an operator rolls out %s', (_, changed, action) => {
  expect(planOperated({ ...operated, ...changed }, { takeOverMs: 60_000 })).toEqual(action);
});

it('failed tasks are read from the metrics of the core, and do not count as completed', () => {
  const page = `# TYPE temporal_workflow_task_execution_failed counter
temporal_workflow_task_execution_failed{namespace="n",task_queue="deliver",failure_reason="NonDeterminismError"} 3
temporal_workflow_task_execution_latency_count{namespace="n",task_queue="deliver"} 40
temporal_workflow_task_execution_latency_bucket{le="50"} 40
temporal_workflow_task_execution_failed{namespace="n",task_queue="replay"} 5
temporal_workflow_task_execution_latency_count{task_queue="other"} 2`;
  expect(parseTaskCounts(page)).toEqual({ completed: 37, failed: 3 });
});
