import { fileURLToPath } from 'node:url';
import type { WorkflowHandle } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { createAttempts } from '#delivery/attempt.ts';
import { type ClaimedDelivery, claimDeliveriesSql } from '#delivery/sql/claim.ts';
import { openTemporal } from '#delivery/temporal.ts';
import { rejectedPost } from '#test/post-results.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { startTestWorker, testNamespace } from '#test/worker.ts';
import { type DeliveryActivities, getWorkflowId, type NextStep } from '#workflows/deliver-event/types.ts';
import { defaultDelaysMs, parseSchedule } from '../../apps/worker/schedule-setting.ts';
import { timesFaster } from '../workflows/virtual-time/speed.ts';

const jitter = 0.1;
/** Deliveries that wait at the same time, one of each webhook. */
const deliveryCount = 10;

describe('the schedule of a delivery', () => {
  it('is one timer for each wait, within its jitter, and no post arrives before its timer has fired', {
    timeout: 120_000,
  }, async () => {
    const schedule = '3s,4s,5s';
    const { database, owner, make } = await setupDatabase();
    const receiver = await startReceiver();
    receiver.respond = (response) => void response.writeHead(500).end();
    // An organization's failing webhooks share five slots, and what finds none waits in the table.
    const professionals = await Promise.all(Array.from({ length: deliveryCount }, () => make.member()));
    for (const [index, { orgId }] of professionals.entries())
      await make.webhook({ orgId, url: `${receiver.url}/${index}` });
    await startTestWorker(database, { DELIVERY_SCHEDULE: schedule });

    for (const professional of professionals) await make.grant({ professional });

    const delaysMs = parseSchedule(schedule);
    await vi.waitFor(() => expect(receiver.received).toHaveLength(deliveryCount * (delaysMs.length + 1)), {
      timeout: 90_000,
    });
    const { rows: deliveries } = await owner.pool.query<{ workflowId: string; path: string }>(
      `select 'delivery/' || d.organization_id || '/' || d.webhook_id || '/' || d.event_id as "workflowId",
         substring(w.url from '/[0-9]+$') as path
       from delivery d join webhook w on w.id = d.webhook_id`,
    );
    const temporal = await openTestTemporal();
    const steps: { timerMs: number; waitMs: number }[][] = delaysMs.map(() => []);
    for (const { workflowId, path } of deliveries) {
      const timersMs = listTimers(await temporal.workflow.getHandle(workflowId).fetchHistory());
      const atMs = receiver.received.filter((post) => post.path === path).map((post) => post.atMs);
      expect([timersMs.length, atMs.length]).toEqual([delaysMs.length, delaysMs.length + 1]);
      for (const [index, timerMs] of timersMs.entries()) {
        steps[index]?.push({ timerMs, waitMs: (atMs[index + 1] ?? Number.NaN) - (atMs[index] ?? Number.NaN) });
      }
    }
    for (const [index, delayMs] of delaysMs.entries()) {
      const step = steps[index] ?? [];
      expect(step).toHaveLength(deliveryCount);
      const overdueMs = step.map(({ timerMs, waitMs }) => waitMs - timerMs);
      expect(Math.min(...step.map(({ timerMs }) => timerMs))).toBeGreaterThanOrEqual(delayMs);
      expect(Math.max(...step.map(({ timerMs }) => timerMs))).toBeLessThanOrEqual(delayMs * (1 + jitter));
      expect(Math.min(...overdueMs)).toBeGreaterThanOrEqual(0);
    }
  });

  /**
   * The current workflow code on the real server with the real schedule, while every timer fires
   * 20,000 times sooner. The durations of timers come from Temporal's history, and the length of
   * each wait from the activities' input.
   */
  it('is thirteen attempts over 72 hours, each wait within its jitter, and then the delivery is exhausted', {
    timeout: 120_000,
  }, async () => {
    const steps: NextStep[] = [];
    const { claimed, pool } = await claimDelivery();
    const temporal = await openTemporal({
      address: inject('temporalAddress'),
      namespace: testNamespace(),
      activities: { ...attemptsThatFail(pool, steps), postTest: async () => null, checkSignatures: async () => null },
      workerSlots: 10,
      bundle: await bundleWorkflowCode({
        workflowsPath: fileURLToPath(import.meta.resolve('#workflows/index.ts')),
        workflowInterceptorModules: [
          fileURLToPath(new URL('../workflows/virtual-time/interceptors.ts', import.meta.url)),
        ],
        logger: new DefaultLogger('ERROR'),
      }),
    });
    onTestFinished(() => temporal.stop());

    await temporal.startRun(claimed);

    const handle = (await openTestTemporal()).workflow.getHandle(getWorkflowId(claimed));
    await handle.result();
    const waitsMs = steps.flatMap((next) => (next.kind === 'wait' ? [next.waitMs] : []));
    expect(waitsMs).toHaveLength(12);
    for (const [index, delayMs] of defaultDelaysMs.entries()) {
      expect(waitsMs[index]).toBeGreaterThanOrEqual(delayMs);
      expect(waitsMs[index]).toBeLessThanOrEqual(delayMs * (1 + jitter));
    }
    expect(new Set(waitsMs.map((waitMs, index) => waitMs / (defaultDelaysMs[index] ?? 1))).size).toBeGreaterThan(6);

    expect(listTimers(await handle.fetchHistory())).toEqual(
      waitsMs.map((waitMs) => Math.max(1, Math.round(waitMs / timesFaster))),
    );
    const { rows } = await pool.query('select state, attempts, failures from delivery');
    expect(rows).toEqual([{ state: 'exhausted', attempts: 13, failures: 13 }]);
  });
});

/** Returns the duration of each timer of a workflow, in milliseconds and in order. */
function listTimers({ events }: Awaited<ReturnType<WorkflowHandle['fetchHistory']>>): number[] {
  return (events ?? []).flatMap(({ timerStartedEventAttributes: timer }) => {
    const timeout = timer?.startToFireTimeout;
    return timeout ? [Number(timeout.seconds ?? 0) * 1000 + (timeout.nanos ?? 0) / 1e6] : [];
  });
}

type Pool = Parameters<typeof createAttempts>[0]['pool'];

/**
 * The worker's activity, with a receiver that fails at once. PostgreSQL's time passes with the
 * timers.
 */
function attemptsThatFail(pool: Pool, steps: NextStep[]): DeliveryActivities {
  const { attemptDelivery } = createAttempts({
    pool,
    delaysMs: defaultDelaysMs,
    sign: () => ({}),
    unsealCustomHeaders: () => ({}),
    post: async () => rejectedPost,
    onStarted: () => {},
    onEnded: (_, next) => void (next === null ? null : steps.push(next)),
    onInternalError: () => {},
  });
  return {
    async attemptDelivery(input) {
      await pool.query('update delivery set due_at = now() where due_at is not null');
      return attemptDelivery(input);
    },
  };
}

/** A claimed delivery, without a worker. */
async function claimDelivery(): Promise<{ claimed: ClaimedDelivery; pool: Pool }> {
  const { owner, make } = await setupDatabase();
  const { pool } = owner;
  const professional = await make.member();
  const webhook = await make.webhook({ orgId: professional.orgId, url: 'http://127.0.0.1:9/' });
  await make.grant({ professional });
  const values = [[professional.orgId], [webhook.id], 1, 1, 10];
  const [claimed] = (await pool.query<ClaimedDelivery>(claimDeliveriesSql, values)).rows;
  if (claimed === undefined) throw new Error('nothing was claimed');
  return { claimed, pool };
}
