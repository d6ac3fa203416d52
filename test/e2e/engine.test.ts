/** What the running engine does when its parts fail, with the real Temporal. */
import type { ServerResponse } from 'node:http';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { redeliverOneSql } from '#delivery/sql/requests.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { startTestWorker } from '#test/worker.ts';
import { deliverQueue, getWorkflowId } from '#workflows/deliver-event/types.ts';

const timeout = 60_000;
const patient = { timeout: 30_000, interval: 50 };

describe('a delivery whose workflow is gone', () => {
  it('gets another run, which continues the schedule at its place and marks its last attempt', {
    timeout,
  }, async () => {
    const t = await arrange({ DELIVERY_SCHEDULE: '1h', REQUEUE_AFTER: '1s' });
    const worker = await t.startWorker();
    await t.makeEvent();
    await t.isSleeping({ attempts: 1 });
    await worker.stop();
    await (await t.handle()).terminate('lost with a store');
    await t.makeDue();

    await t.startWorker();

    await t.isSettled({ state: 'exhausted', attempts: 2, run: 2 });
    expect(await t.attempts()).toEqual([
      { number: 1, run: 1, ends_schedule: false },
      { number: 2, run: 2, ends_schedule: true },
    ]);
    expect(t.receiver.received).toHaveLength(2);
  });

  it('is not lost when a late start of an older run has ended the newer one', { timeout }, async () => {
    const t = await arrange({ DELIVERY_SCHEDULE: '1h,1h', REQUEUE_AFTER: '1s' });
    await t.startWorker();
    await t.makeEvent();
    await t.isSleeping({ attempts: 1 });
    await t.redeliver();
    await t.isSleeping({ attempts: 2 });
    const newer = (await (await t.handle()).describe()).runId;

    const late = await t.startLate(1);

    await late.result();
    expect(await t.readStatus(newer)).toBe('TERMINATED');
    expect(t.receiver.received).toHaveLength(2);
    t.receiver.respond = accept;
    await t.makeDue();
    await t.isSettled({ state: 'delivered', attempts: 3, run: 3 });
    expect(t.receiver.received).toHaveLength(3);
  });

  it('is sent by the run that the request claims, and the one that slept is ended', { timeout }, async () => {
    const t = await arrange({ DELIVERY_SCHEDULE: '1h,1h' });
    await t.startWorker();
    await t.makeEvent();
    await t.isSleeping({ attempts: 1 });
    const older = (await (await t.handle()).describe()).runId;
    t.receiver.respond = accept;

    await t.redeliver();

    await t.isSettled({ state: 'delivered', attempts: 2, run: 2 });
    expect(await t.readStatus(older)).toBe('TERMINATED');
    await (await t.handle()).result();
  });
});

describe('a webhook that is paused and resumed', () => {
  it('keeps the place of its deliveries in the schedule', { timeout }, async () => {
    const t = await arrange({ DELIVERY_SCHEDULE: '1h,1h' });
    await t.startWorker();
    await t.makeEvent();
    for (const attempts of [1, 2]) {
      await t.isSleeping({ attempts });
      await t.rows(`update webhook set state = 'paused'`);
      await vi.waitFor(async () => expect(await t.states()).toMatchObject([{ state: 'queued' }]), patient);
      await t.rows(`update webhook set state = 'active', suspended_reason = null`);
    }
    await t.isSettled({ state: 'exhausted', attempts: 3, run: 3 });
    expect((await t.attempts()).map(({ ends_schedule }) => ends_schedule)).toEqual([false, false, true]);
    expect(t.receiver.received).toHaveLength(3);
  });

  it('whose deliveries are cancelled with it is sent nothing more when it is deleted', { timeout }, async () => {
    const t = await arrange({ DELIVERY_SCHEDULE: '1h,1h' });
    await t.startWorker();
    await t.makeEvent();
    await t.isSleeping({ attempts: 1 });
    await t.rows(`update webhook set state = 'deleted', number = null`);
    await t.isSettled({ state: 'cancelled', attempts: 1, run: 1 });
    expect(t.receiver.received).toHaveLength(1);
  });
});

it('a transaction that holds the row of a webhook stops none of its deliveries', { timeout }, async () => {
  const t = await arrange({ DELIVERY_SCHEDULE: '300ms,300ms,1h' });
  t.receiver.respond = (response) => void response.writeHead(t.receiver.received.length < 3 ? 500 : 200).end();
  await t.startWorker();
  const holder = await t.pool.connect();
  onTestFinished(() => holder.release(true));
  await holder.query(`begin; update webhook set description = 'as it is edited'`);
  await t.makeEvent();
  await t.isSettled({ state: 'delivered', attempts: 3, run: 1 });
  const { rows } = await t.pool.query('select concurrency, failing_since from receiver');
  expect(rows).toMatchObject([{ failing_since: null }]);
  await holder.query('rollback');
});

it('deliveries wait in the table while their process cannot sign, and go out once it can', { timeout }, async () => {
  const t = await arrange({ REQUEUE_AFTER: '1s' });
  const otherKey = `9:${Buffer.alloc(32, 9).toString('base64')}`;
  const broken = await t.startWorker({ WEBHOOK_SECRET_KEYS: otherKey });
  await t.makeEvent();
  const metric = /^org_api_delivery_internal_errors_total\{cause="internal_error"\} 1$/m;
  await vi.waitFor(
    async () => expect(await (await fetch(`${broken.metricsUrl}/metrics`)).text()).toMatch(metric),
    patient,
  );
  expect(broken.logLines.join('')).toContain('add that version to WEBHOOK_SECRET_KEYS');
  expect(broken.logLines.join('')).not.toContain('whsec_');
  await broken.stop();
  expect(t.receiver.received).toHaveLength(0);

  t.receiver.respond = accept;
  await t.startWorker();
  await t.makeDue();
  await t.isSettled({ state: 'delivered', attempts: 2, run: 2 });
  expect(t.receiver.received).toHaveLength(1);
});

const accept = (response: ServerResponse) => void response.writeHead(200).end();

/** One webhook, whose receiver rejects everything, and its organization's events. */
async function arrange(settings: Record<string, string>) {
  const { database, owner, make } = await setupDatabase();
  const { pool } = owner;
  const receiver = await startReceiver();
  receiver.respond = (response) => void response.writeHead(500).end();
  const professional = await make.member();
  const webhook = await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const client = await openTestTemporal();
  const rows = async (query: string) => (await pool.query(query)).rows;
  const key = async () => {
    const [event] = await rows('select id from event');
    return { organizationId: professional.orgId, webhookId: webhook.id, eventId: event?.id as string };
  };
  const handle = async () => client.workflow.getHandle(getWorkflowId(await key()));
  const states = () => rows('select state, attempts, run from delivery');
  // The next test's worker has the same queue.
  onTestFinished(async () => void (await (await handle()).terminate().catch(() => {})));
  return {
    pool,
    receiver,
    rows,
    states,
    handle,
    startWorker: (more: Record<string, string> = {}) => startTestWorker(database, { ...settings, ...more }),
    makeEvent: () => make.grant({ professional }),
    redeliver: async () => pool.query(redeliverOneSql, Object.values(await key())),
    /** Starts a run as its relay does whose request arrives late. */
    startLate: async (run: number) =>
      client.workflow.start('deliverEvent', {
        taskQueue: deliverQueue,
        workflowId: getWorkflowId(await key()),
        args: [{ ...(await key()), run, isDegraded: false, type: 'client.started', dueAtMs: Date.now() }],
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
        workflowIdConflictPolicy: 'TERMINATE_EXISTING',
      }),
    async readStatus(runId: string) {
      const { workflowId } = await handle();
      return (await client.workflow.getHandle(workflowId, runId).describe()).status.name;
    },
    /** The delivery is due, and its run was to ask two seconds ago. */
    makeDue: () => rows(`update delivery set due_at = now() - interval '2 seconds' where due_at is not null`),
    attempts: () => rows('select number, run, ends_schedule from delivery_attempt order by number'),
    isSleeping: (expected: { attempts: number }) =>
      vi.waitFor(async () => {
        const sleeping = `select state, attempts from delivery where not exists (select from slot)`;
        expect(await rows(sleeping)).toEqual([{ state: 'running', ...expected }]);
      }, patient),
    isSettled: (expected: { state: string; attempts: number; run: number }) =>
      vi.waitFor(async () => expect(await states()).toEqual([expected]), patient),
  };
}
