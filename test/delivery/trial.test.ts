/** When a new worker counts as ready. */
import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { expect, it, onTestFinished, vi } from 'vitest';
import { parseFailedTasks } from '#delivery/failed-tasks.ts';
import { createDeliveryMetrics } from '#delivery/metrics.ts';
import { waitForQuiet } from '#delivery/other-workers.ts';
import { createTestActivities } from '#delivery/send-test.ts';
import { createSender } from '#delivery/sender.ts';
import { Trial } from '#delivery/trial.ts';
import { sealSecret } from '#domain/webhooks/seal.ts';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { createLog } from '#runtime/log.ts';
import { setupDatabase } from '#test/setup.ts';
import { workerEnvironment } from '#test/worker.ts';
import { readConfig } from '../../apps/worker/config.ts';

function arrangeTrial({ durationMs = 60_000 } = {}) {
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
  /** Resolves after a whole check that began later. */
  const afterCheck = async () => {
    const before = counts.reads;
    await vi.waitFor(() => expect(counts.reads).toBeGreaterThan(before + 1), { timeout: 30_000 });
  };
  return { trial, counts, reasons, afterCheck, start: () => trial.start() };
}

function startTrial(options: { durationMs?: number } = {}) {
  const arranged = arrangeTrial(options);
  arranged.start();
  return arranged;
}

it('a worker is ready after enough attempts without an internal error, and not before', async () => {
  const { trial, afterCheck } = startTrial();
  trial.countAttempt();
  trial.countAttempt();
  await afterCheck();
  expect(trial.state).toBe('underway');

  trial.countAttempt();
  await vi.waitFor(() => expect(trial.state).toBe('passed'), { timeout: 30_000 });
});

it('a worker without work is ready after its trial', async () => {
  const { trial } = startTrial({ durationMs: 20 });
  await vi.waitFor(() => expect(trial.state).toBe('passed'), { timeout: 30_000 });
});

// A build that cannot replay must not become ready because Temporal was unavailable for a while.
it('the time before a worker delivers is no part of its trial', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const { trial, start, afterCheck } = arrangeTrial();
  vi.advanceTimersByTime(3_600_000);
  start();
  await afterCheck();
  expect(trial.state).toBe('underway');
  vi.advanceTimersByTime(60_000);
  await vi.waitFor(() => expect(trial.state).toBe('passed'), { timeout: 30_000 });
});

it('a worker without a trial is ready at once', () => {
  expect(startTrial({ durationMs: 0 }).trial.state).toBe('passed');
});

it('a failed workflow task fails the trial, also with enough attempts', async () => {
  const { trial, counts, reasons } = startTrial();
  counts.failedTasks = 1;
  for (let attempt = 0; attempt < 3; attempt += 1) trial.countAttempt();
  await vi.waitFor(() => expect(trial.state).toBe('failed'), { timeout: 30_000 });

  trial.fail('A request could not be signed.');
  expect(reasons).toEqual(['1 workflow tasks failed.']);
});

it('an internal error after the trial stops nothing', async () => {
  const { trial, reasons } = startTrial({ durationMs: 1 });
  await vi.waitFor(() => expect(trial.state).toBe('passed'), { timeout: 30_000 });
  trial.fail('A request could not be signed.');
  expect(trial.state).toBe('passed');
  expect(reasons).toEqual([]);
});

it('the damaged secret of one webhook fails no trial, and those of two, as of a wrong key, do', async () => {
  const { database, make } = await setupDatabase();
  const { orgId: organizationId, id } = await make.webhook();
  const { trial } = startTrial();
  const config = readConfig(workerEnvironment(database));
  const log = createLog({ level: 'silent', name: 'test', region: 'us' });
  const { sign } = createSender({ config, metrics: createDeliveryMetrics(new Registry()), log, trial });
  const sealed = sealSecret(generateSecret(), { organizationId, webhookId: randomUUID() }, config.webhookSecretKeys);
  const signFor = (webhookId: string) => () =>
    sign(
      { organizationId, webhookId, eventId: randomUUID() },
      { sealed: [sealed], body: Buffer.from('{}'), timestampSeconds: 1 },
    );
  for (let nth = 0; nth < 2; nth += 1) expect(signFor(id)).toThrow('does not open');
  expect(trial.state).toBe('underway');
  expect(signFor(randomUUID())).toThrow('does not open');
  expect(trial.state).toBe('failed');
});

it('a statement that PostgreSQL ended fails the trial, but not that of a test event', async () => {
  const { database, owner, make } = await setupDatabase();
  const { orgId: organizationId, id: webhookId } = await make.webhook();
  const { trial } = startTrial();
  const sender = createSender({
    config: readConfig(workerEnvironment(database)),
    metrics: createDeliveryMetrics(new Registry()),
    log: createLog({ level: 'silent', name: 'test', region: 'us' }),
    trial,
  });
  await owner.pool.query('alter table webhook_secret rename to webhook_secret_elsewhere');
  const { postTest } = createTestActivities({ ...sender, database: owner });
  await expect(postTest({ organizationId, webhookId, eventType: 'client.started' })).rejects.toThrow('internal error');

  expect(trial.state).toBe('underway');
  const error = await owner.pool.query(`do $$ begin raise sqlstate '57014'; end $$`).catch((thrown) => thrown);
  sender.onInternalError(error, { organizationId, webhookId, eventId: '' }, 'activity_failed');
  expect(trial.state).toBe('failed');
});

// Temporal lists no poller right after its restart.
it('a stopped worker waits while others poll and while Temporal does not answer, also if one look lists no poll', async () => {
  let looks = 0;
  let listed: (look: number) => number = (look) => (look % 10 === 0 ? 0 : look);
  let isOver = false;
  const waiting = waitForQuiet(async () => listed(++looks), {
    goneAfterMs: 500,
    checkEveryMs: 1,
    signal: AbortSignal.timeout(60_000),
    log: createLog({ level: 'silent', name: 'test', region: 'us' }),
  }).finally(() => {
    isOver = true;
  });
  const nextLooks = async () => {
    const [from, startedAt] = [looks, performance.now()];
    await vi.waitFor(() => expect(looks - from > 20 && performance.now() - startedAt > 1_500).toBe(true), 20_000);
  };
  await nextLooks();
  expect(isOver).toBe(false);
  listed = () => {
    throw new Error('Temporal is unavailable');
  };
  await nextLooks();
  expect(isOver).toBe(false);

  listed = () => 0;
  const before = looks;
  await waiting;
  expect(looks - before).toBeGreaterThan(1);
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
