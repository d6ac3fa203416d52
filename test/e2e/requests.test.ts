import pg from 'pg';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { mountSettings, startTemporalFront } from '#test/temporal-front.ts';
import { startTestWorker } from '#test/worker.ts';
import { type DeliveryId, getWorkflowId } from '#workflows/deliver-event/types.ts';

/** Deliveries that are counted, and the most that are made until so many were undisturbed. */
const events = 10;
const maxEvents = 60;
/**
 * A delivery that took longer is not counted: after 4 s, Temporal's SDK asks for more time for the task
 * (80 % of `workflowTaskTimeout`), after 5 s a start is sent once more, and both are further requests.
 */
const undisturbedMs = 3_000;
const patient = { timeout: 60_000, interval: 10 };

it('a delivery that its receiver accepts makes two requests to Temporal and three statements', async () => {
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const front = await startTemporalFront(inject('temporalAddress'));
  const temporal = await openTestTemporal();
  await startTestWorker(database, mountSettings(front));
  const query = vi.spyOn(pg.Pool.prototype, 'query');
  onTestFinished(() => query.mockRestore());
  const delivered = new Set<string>();
  const deliver = async () => {
    const [callsBefore, queriesBefore] = [front.calls.length, query.mock.calls.length];
    const startedAt = performance.now();
    await make.grant({ professional });
    const workflowId = await vi.waitUntil(async () => {
      const { rows } = await owner.pool.query<DeliveryId>(
        `select organization_id as "organizationId", webhook_id as "webhookId", event_id as "eventId"
         from delivery where state = 'delivered'`,
      );
      return rows.map(getWorkflowId).find((id) => !delivered.has(id));
    }, patient);
    delivered.add(workflowId);
    await temporal.workflow.getHandle(workflowId).result();
    const queries = query.mock.calls.slice(queriesBefore);
    return {
      tookMs: performance.now() - startedAt,
      calls: front.calls.slice(callsBefore),
      statements: queries.map(([sent]) => (sent as { name?: string }).name ?? 'unnamed'),
    };
  };
  await deliver(); // the first one of a process also opens connections

  const counted: Awaited<ReturnType<typeof deliver>>[] = [];
  while (counted.length < events && delivered.size < maxEvents) {
    const delivery = await deliver();
    if (delivery.tookMs < undisturbedMs) counted.push(delivery);
  }

  expect(counted).toHaveLength(events);
  // Polls wait for tasks of retries, whatever is delivered.
  const polls = /^(Poll|DescribeTaskQueue|RecordWorker|GetSystemInfo)/;
  for (const { calls } of counted)
    expect(calls.filter((call) => !polls.test(call))).toEqual([
      'StartWorkflowExecution',
      'RespondWorkflowTaskCompleted',
    ]);
  const { claimDeliveries, admitAttempt, recordOutcome, ...rest } = countNames(
    counted.flatMap(({ statements }) => statements),
  );
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
