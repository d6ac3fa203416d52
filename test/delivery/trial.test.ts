/** When a new worker counts as ready. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { parseFailedTasks } from '#delivery/failed-tasks.ts';
import { Trial } from '#delivery/trial.ts';

function startTrial({ durationMs = 60_000 } = {}) {
  const counts = { failedTasks: 0, reads: 0 };
  const reasons: string[] = [];
  const trial = new Trial({
    durationMs,
    attempts: 3,
    checkEveryMs: 1,
    countFailedTasks: async () => {
      counts.reads += 1;
      return counts.failedTasks;
    },
    onFailed: (reason) => void reasons.push(reason),
    onError: (cause) => expect.unreachable(String(cause)),
  });
  onTestFinished(() => trial.stop());
  trial.start();
  /** Resolves after a whole check that began later. */
  const afterCheck = async () => {
    const before = counts.reads;
    await vi.waitFor(() => expect(counts.reads).toBeGreaterThan(before + 1));
  };
  return { trial, counts, reasons, afterCheck };
}

it('a worker is ready after enough attempts without an internal error, and not before', async () => {
  const { trial, afterCheck } = startTrial();
  trial.countAttempt();
  trial.countAttempt();
  await afterCheck();
  expect(trial.state).toBe('underway');

  trial.countAttempt();
  await vi.waitFor(() => expect(trial.state).toBe('passed'));
});

it('a worker without work is ready after its trial', async () => {
  const { trial } = startTrial({ durationMs: 20 });
  await vi.waitFor(() => expect(trial.state).toBe('passed'));
});

it('a worker without a trial is ready at once', () => {
  expect(startTrial({ durationMs: 0 }).trial.state).toBe('passed');
});

it('a failed workflow task fails the trial, also with enough attempts', async () => {
  const { trial, counts, reasons } = startTrial();
  counts.failedTasks = 1;
  for (let attempt = 0; attempt < 3; attempt += 1) trial.countAttempt();
  await vi.waitFor(() => expect(trial.state).toBe('failed'));

  trial.fail('A request could not be signed.');
  expect(reasons).toEqual(['1 workflow tasks failed.']);
});

it('an internal error after the trial stops nothing', async () => {
  const { trial, reasons } = startTrial({ durationMs: 1 });
  await vi.waitFor(() => expect(trial.state).toBe('passed'));
  trial.fail('A request could not be signed.');
  expect(trial.state).toBe('passed');
  expect(reasons).toEqual([]);
});

it('failed workflow tasks are added up over the queues of the page of the SDK’s core', () => {
  const page = [
    '# HELP temporal_workflow_task_execution_failed Count',
    'temporal_workflow_task_execution_failed{task_queue="deliver",failure_reason="NonDeterminismError"} 2',
    'temporal_workflow_task_execution_failed{task_queue="deliver",failure_reason="WorkflowError"} 1',
    'temporal_workflow_task_execution_latency_count{task_queue="deliver"} 40',
  ].join('\n');
  expect(parseFailedTasks(page)).toBe(3);
  expect(parseFailedTasks('')).toBe(0);
});
