import pg from 'pg';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { mountSettings, startTemporalFront } from '#test/temporal-front.ts';
import { startTestWorker } from '#test/worker.ts';

const events = 10;
const patient = { timeout: 30_000, interval: 10 };

it('a delivery that its receiver accepts makes two requests to Temporal and three statements', async () => {
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const front = await startTemporalFront(inject('temporalAddress'));
  await startTestWorker(database, mountSettings(front));
  const deliver = async (nth: number) => {
    await make.grant({ professional });
    await vi.waitFor(async () => {
      const { rowCount } = await owner.pool.query(`select from delivery where state = 'delivered'`);
      expect(rowCount).toBe(nth);
    }, patient);
    await vi.waitFor(() => expect(countNames(front.calls).RespondWorkflowTaskCompleted).toBe(nth), patient);
  };
  await deliver(1);
  front.calls.splice(0, front.calls.length, 'RespondWorkflowTaskCompleted');
  const query = vi.spyOn(pg.Pool.prototype, 'query');
  onTestFinished(() => query.mockRestore());

  for (let nth = 2; nth <= events + 1; nth += 1) await deliver(nth);

  const { RespondWorkflowTaskCompleted: completed = 0, StartWorkflowExecution, ...others } = countNames(front.calls);
  expect({ StartWorkflowExecution, completed: completed - 1 }).toEqual({
    StartWorkflowExecution: events,
    completed: events,
  });
  // Polls wait for tasks of retries, whatever is delivered.
  expect(
    Object.keys(others).filter((call) => !/^(Poll|DescribeTaskQueue|RecordWorker|GetSystemInfo)/.test(call)),
  ).toEqual([]);
  const named = query.mock.calls.map(([sent]) => (sent as { name?: string }).name ?? 'unnamed');
  const { claimDeliveries, admitAttempt, recordOutcome, ...rest } = countNames(named);
  expect({ admitAttempt, recordOutcome }).toEqual({ admitAttempt: events, recordOutcome: events });
  // A claim may get nothing while another connection assigns slots of the organization.
  expect(claimDeliveries).toBeGreaterThanOrEqual(events);
  expect(claimDeliveries).toBeLessThan(1.5 * events);
  // What runs each second or in each poll, whatever is delivered, and the test's own.
  expect(Object.keys(rest).filter((name) => !/^(listQueued|repair|unblock|unnamed)$/.test(name))).toEqual([]);
});

function countNames(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
