import type { ServerResponse } from 'node:http';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { deleteWebhook, pauseWebhook } from '#domain/webhooks/park.ts';
import { beginRoundSql } from '#test/begin-round.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { startTestWorker } from '#test/worker.ts';
import { cancelOrphanedWorkflows } from '../../apps/worker/relay/cancel-orphaned-workflows.ts';
import { createDeliveryWorkflows } from '../../apps/worker/relay/delivery-workflows.ts';
import { reconcile } from '../../apps/worker/relay/reconciler.ts';
import { stateQuery } from '../../workflows/deliver-event/workflow.ts';

const timeout = 90_000;
const patient = { timeout: 40_000, interval: 50 };
const overdueMs = 1_000;

describe('the reconciler of a late delivery whose workflow runs', () => {
  it('starts the attempt when the workflow waits on its timer, as after a lost signal', { timeout }, async () => {
    const { isWaiting, setDue, run, receiver, isOverdue } = await setupDelivery();
    await isWaiting(1);
    expect(await run()).toMatchObject({ begun: 0, retriesRequested: 0 }); // due in an hour
    await setDue('clock_timestamp()'); // as a redelivery does, whose signal is lost here
    await isOverdue();

    expect(await run()).toMatchObject({ begun: 0, retriesRequested: 1 });

    await isWaiting(2);
    expect(receiver.received).toHaveLength(2);
  });

  it('leaves it alone while its attempt is in progress, and during the following wait', { timeout }, async () => {
    const { isWaiting, setDue, run, receiver, held, workflows, delivery, handle } = await setupDelivery({
      isHeld: true,
    });
    await vi.waitFor(() => expect(held).toHaveLength(1), patient);
    await setDue(`clock_timestamp() - interval '1 hour'`);
    expect(await run()).toMatchObject({ begun: 0, retriesRequested: 0 });

    // A signal arrives while the attempt is in progress, and another one after it.
    const sawAtMs = Date.now() - overdueMs;
    await workflows.retryNow(delivery, sawAtMs + overdueMs / 2);
    held[0]?.writeHead(500).end();
    await isWaiting(1);
    await workflows.retryNow(delivery, sawAtMs + overdueMs / 2);

    expect(await handle.query(stateQuery)).toEqual({ state: 'waiting', failed: 1 });
    expect(receiver.received).toHaveLength(1);
  });
});

describe('a workflow whose delivery needs none', () => {
  it.each([
    ['is paused', pauseWebhook],
    ['is deleted', deleteWebhook],
  ] as const)('is ended when its webhook %s, and one that is needed continues', { timeout }, async (_, change) => {
    const { isWaiting, sweep, owner, make, delivery, handle, client } = await setupDelivery();
    await isWaiting(1);
    const other = await make.webhook({ orgId: delivery.organizationId, url: 'http://127.0.0.1:9/' });
    await make.grant({ professional: await make.member({ orgId: delivery.organizationId }) });
    await change(owner.orm.em, {
      organizationId: delivery.organizationId,
      webhookId: delivery.webhookId,
      by: 'operator',
    });

    await vi.waitFor(async () => expect(await sweep()).toBeGreaterThan(0), patient);

    expect(await handle.result()).toBe('closed');
    const { rows } = await owner.pool.query<{ id: string }>(
      'select event_id as id from delivery where webhook_id = $1',
      [other.id],
    );
    const owed = client.workflow.getHandle(`delivery/${other.id}/${rows[0]?.id}`);
    await vi.waitFor(async () => expect((await owed.query(stateQuery)).state).toBe('waiting'), patient);
    expect((await owed.describe()).status.name).toBe('RUNNING');
    await owed.terminate();
  });

  it('is ended when another round has replaced it, also by the worker on its own', { timeout }, async () => {
    const { isWaiting, owner, delivery, handle, client } = await setupDelivery({
      settings: { RECONCILE_AFTER: '1s' },
    });
    await isWaiting(1);
    const { organizationId, webhookId, eventId } = delivery;
    await owner.pool.query(beginRoundSql, [organizationId, webhookId, eventId, 1]);
    expect(await handle.result()).toBe('closed');
    const second = client.workflow.getHandle(`delivery/${webhookId}/${eventId}/r2`);
    await vi.waitFor(async () => expect((await second.query(stateQuery)).failed).toBe(1), patient);
    await second.terminate();
  });
});

/**
 * A delivery whose receiver refuses it (or delays its answer), with an hour to the next attempt,
 * and the dependencies of the worker's repairs.
 */
async function setupDelivery(options: { isHeld?: boolean; settings?: Record<string, string> } = {}) {
  const { database, owner, make } = await setupDatabase();
  const { pool } = owner;
  const receiver = await startReceiver();
  const held: ServerResponse[] = [];
  receiver.answer = options.isHeld
    ? (response) => void held.push(response)
    : (response) => void response.writeHead(500).end();
  const professional = await make.member();
  const webhook = await make.webhook({ orgId: professional.orgId, url: receiver.url });
  await startTestWorker(database, { DELIVERY_SCHEDULE: '1h,1h', ...options.settings });
  await make.grant({ professional });
  const client = await openTestTemporal();
  const { rows } = await pool.query<{ id: string }>('select id from event');
  const delivery = { organizationId: professional.orgId, webhookId: webhook.id, eventId: rows[0]?.id ?? '', round: 1 };
  const handle = client.workflow.getHandle(`delivery/${webhook.id}/${delivery.eventId}`);
  onTestFinished(() =>
    handle.terminate().then(
      () => {},
      () => {},
    ),
  ); // the next test's worker has the same queues
  const attributes = { of: () => undefined, wereRefused: () => false };
  const workflows = createDeliveryWorkflows({ client, delaysMs: [], attributes });
  const { signal } = new AbortController();
  const so = async (condition: string) => {
    const { rows } = await pool.query<{ so: boolean }>(`select ${condition} as so from delivery where round = 1`);
    expect(rows[0]?.so).toBe(true);
  };
  return {
    owner,
    make,
    receiver,
    held,
    client,
    delivery,
    handle,
    workflows,
    run: () => reconcile({ pool, ...workflows, overdueMs, signal }),
    sweep: () =>
      cancelOrphanedWorkflows({ pool, running: workflows.listRunning(new Date()), cancel: workflows.cancel, signal }),
    setDue: (moment: string) => pool.query(`update delivery set next_attempt_at = ${moment}`),
    isOverdue: () => vi.waitFor(() => so(`next_attempt_at < clock_timestamp() - interval '${overdueMs} ms'`), patient),
    isWaiting: (failed: number) =>
      vi.waitFor(async () => expect(await handle.query(stateQuery)).toEqual({ state: 'waiting', failed }), patient),
  };
}
