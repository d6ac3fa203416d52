/**
 * Which late deliveries raise an alert: those of a stopped worker, not those of a receiver that
 * hangs.
 */
import { expect, it, vi } from 'vitest';
import { readLedger } from '#domain/webhooks/ledger.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTestWorker } from '#test/worker.ts';

const patient = { timeout: 40_000, interval: 100 };

it('a hanging receiver with a backlog makes its deliveries overdue and none stuck, until the worker stops', {
  timeout: 120_000,
}, async () => {
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  receiver.answer = () => {};
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  for (let grant = 0; grant < 15; grant += 1) await make.grant({ professional });
  const worker = await startTestWorker(database);
  await vi.waitFor(() => expect(receiver.received).toHaveLength(10), patient);
  const late = async () => {
    await owner.pool.query(
      `update delivery set next_attempt_at = now() - interval '2 minutes' where state = 'waiting'`,
    );
    const { overdue, stuck, difference } = await readLedger(owner.pool);
    return { overdue, stuck, difference };
  };
  // If an attempt ends between the two statements, its next one is in the future, and it is not
  // late.
  const allAreLate = () =>
    vi.waitFor(async () => expect(await late()).toEqual({ overdue: 15, stuck: 0, difference: 0 }), patient);
  await allAreLate();
  await vi.waitFor(async () => {
    const { rows } = await owner.pool.query('select from webhook where failing_since is not null');
    expect(rows).toHaveLength(1);
  }, patient);
  await allAreLate();

  await worker.stop();
  // Moves it six minutes into the past.
  await owner.pool.query(
    `update delivery_attempt set started_at = started_at - interval '6 minutes', finished_at = finished_at -
      interval '6 minutes'`,
  );
  expect(await late()).toEqual({ overdue: 15, stuck: 15, difference: 0 });
});
