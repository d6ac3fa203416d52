/**
 * Workflows that cannot make progress, on the real Temporal: their deliveries are sent
 * nevertheless, and no post is repeated.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Worker } from '@temporalio/worker';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { admitAttemptSql } from '#domain/db/statements/attempts.ts';
import { replaceRoundSql } from '#domain/db/statements/claim-deliveries.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { startTestWorker, testNamespace } from '#test/worker.ts';
import { writeWorkflowBundle } from '#workflows/bundle.ts';
import { createDeliveryWorkflows } from '../../apps/worker/relay/delivery-workflows.ts';
import { reconcile } from '../../apps/worker/relay/reconciler.ts';
import { type DeliverEventInput, workflowIdOf } from '../../workflows/deliver-event/types.ts';

const timeout = 180_000;
const patient = { timeout: 120_000, interval: 200 };
const soon = { RECONCILE_AFTER: '1s', DELIVERY_SCHEDULE: '1h,1h' };

const bundleOf = (folder: string) =>
  bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL(`../workflows/${folder}/index.ts`, import.meta.url)),
    logger: new DefaultLogger('ERROR'),
  });

it('a workflow that no worker can replay is terminated, and its delivery is sent in a new round', {
  timeout,
}, async () => {
  const t = await arrange();
  t.receiver.answer = (response) => void response.writeHead(500).end();
  const before = await startTestWorker(t.database, { DELIVERY_SCHEDULE: '1h,1h' });
  await t.makeEvent();
  await vi.waitFor(async () => expect(await t.rows('select cause from delivery_attempt')).toHaveLength(1), patient);
  await vi.waitFor(async () => expect(await t.getStatus()).toBe('waiting'), patient);
  await before.stop();

  t.receiver.answer = (response) => void response.writeHead(204).end();
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'altered-')), 'bundle.json');
  writeWorkflowBundle(file, await bundleOf('altered'));
  const altered = await startTestWorker(t.database, { ...soon, WORKFLOW_BUNDLE: file });
  await t.owner.pool.query(`update delivery set next_attempt_at = clock_timestamp() - interval '1 minute'`);

  await vi.waitFor(
    async () => expect(await t.rows('select state, round from delivery')).toEqual([{ state: 'delivered', round: 2 }]),
    patient,
  );
  expect((await t.handle().describe()).status.name).toBe('TERMINATED');
  expect(await t.rows('select round, status from delivery_attempt order by number')).toEqual([
    { round: 1, status: 500 },
    { round: 2, status: 204 },
  ]);
  const page = await (await fetch(`${altered.metricsUrl}/metrics`)).text();
  expect(page).toContain('org_api_delivery_workflows_replaced_total{reason="failing"} 1');
});

it('a workflow whose activity waits in a queue without a worker is terminated, and its delivery is sent in a new round', {
  timeout,
}, async () => {
  const t = await arrange();
  await t.makeEvent();
  await t.startStranded();
  const worker = await startTestWorker(t.database, soon);
  await vi.waitFor(
    async () => expect(await t.rows('select state, round from delivery')).toEqual([{ state: 'delivered', round: 2 }]),
    patient,
  );
  expect((await t.handle().describe()).status.name).toBe('TERMINATED');
  expect(t.receiver.received).toHaveLength(1);
  const page = await (await fetch(`${worker.metricsUrl}/metrics`)).text();
  expect(page).toContain('org_api_delivery_workflows_replaced_total{reason="stranded"} 1');
});

it('a workflow without progress is left alone while an admitted attempt is unexpired, and is replaced once the attempt is lost', {
  timeout,
}, async () => {
  const t = await arrange();
  await t.makeEvent();
  await t.startStranded();
  const [{ id }] = (await t.rows('select event_id as id from delivery')) as [{ id: string }];
  await t.owner.pool.query(admitAttemptSql, [t.ids.organizationId, t.ids.webhookId, id, 1, false, false, randomUUID()]);
  await t.setDue();
  await vi.waitFor(async () => expect(await t.getStatus()).toBe('stranded'), patient);

  expect(await t.repair()).toMatchObject({ stranded: 0 });
  expect((await t.handle().describe()).status.name).toBe('RUNNING');
  expect(await t.rows('select round from delivery')).toEqual([{ round: 1 }]);

  await t.owner.pool.query(`update delivery_attempt set started_at = started_at - interval '1 minute'`);
  expect(await t.repair()).toMatchObject({ stranded: 1 });
  expect((await t.handle().describe()).status.name).toBe('TERMINATED');
  expect(await t.rows('select round, cause from delivery_attempt')).toEqual([{ round: 1, cause: 'lost' }]);
  expect(await t.rows('select round, started from delivery')).toEqual([{ round: 2, started: false }]);
});

it('a replaced workflow that a dying process did not terminate is ended by the sweep of orphaned workflows', {
  timeout,
}, async () => {
  const t = await arrange();
  await t.makeEvent();
  await t.startStranded();
  const [{ id, dueAt }] = (await t.rows('select event_id as id, next_attempt_at::text as "dueAt" from delivery')) as [
    { id: string; dueAt: string },
  ];
  const { organizationId, webhookId } = t.ids;
  await t.owner.pool.query(replaceRoundSql, [organizationId, webhookId, id, 1, dueAt]); // and is killed here
  const worker = await startTestWorker(t.database, soon);
  await vi.waitFor(async () => expect((await t.handle().describe()).status.name).toBe('TERMINATED'), patient);
  await vi.waitFor(
    async () => expect(await t.rows('select state, round from delivery')).toEqual([{ state: 'delivered', round: 2 }]),
    patient,
  );
  expect(t.receiver.received).toHaveLength(1);
  await worker.stop();
});

it('a redelivery whose workflow makes no progress is started again, and is carried out once', { timeout }, async () => {
  const t = await arrange();
  await t.makeEvent();
  const first = await startTestWorker(t.database, soon);
  await vi.waitFor(() => expect(t.receiver.received).toHaveLength(1), patient);
  await first.stop();
  const redeliveryId = randomUUID();
  await t.startStrandedRedelivery(redeliveryId);
  await t.requestRedelivery(redeliveryId);
  await startTestWorker(t.database, soon);
  await vi.waitFor(
    async () => expect(await t.rows('select state, queued from redelivery')).toEqual([{ state: 'done', queued: 1 }]),
    patient,
  );
  await vi.waitFor(() => expect(t.receiver.received).toHaveLength(2), patient);
});

/** A webhook with one event, and workflows with other code than the current. */
async function arrange() {
  const { database, owner, make } = await setupDatabase();
  const client = await openTestTemporal();
  const receiver = await startReceiver();
  const professional = await make.member();
  const webhook = await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const ids = { organizationId: professional.orgId, webhookId: webhook.id };
  const rows = async (query: string): Promise<Record<string, unknown>[]> => (await owner.pool.query(query)).rows;
  let eventId = '';
  const handle = () => client.workflow.getHandle(workflowIdOf({ ...ids, eventId }, 1));
  const attributes = { of: () => undefined, wereRefused: () => false };
  const workflows = createDeliveryWorkflows({ client, delaysMs: [], attributes, strandedAfterMs: 1_000 });

  /**
   * Starts a workflow whose activity goes to a queue without a worker, with a worker that then
   * stops.
   */
  async function startStranded(workflowType: string, workflowId: string, input: object): Promise<void> {
    const connection = await NativeConnection.connect({ address: inject('temporalAddress') });
    const taskQueue = `stranded-${randomUUID()}`;
    const workflowBundle = await bundleOf('stranded');
    const worker = await Worker.create({ connection, namespace: testNamespace(), taskQueue, workflowBundle });
    const options = { workflowId, args: [{ ...input, queue: `unserved-${randomUUID()}` }], taskQueue };
    await worker.runUntil(async () => {
      const started = await client.workflow.start(workflowType, options);
      onTestFinished(() =>
        started.terminate().then(
          () => {},
          () => {},
        ),
      );
      await vi.waitFor(async () => expect((await started.describe()).raw.pendingActivities).toHaveLength(1), patient);
    });
    await connection.close();
  }

  return {
    database,
    owner,
    receiver,
    rows,
    ids,
    handle,
    async makeEvent(): Promise<void> {
      await make.grant({ professional });
      eventId = (await rows('select id from event'))[0]?.id as string;
    },
    getStatus: () => workflows.getStatus({ ...ids, eventId, round: 1 }, Date.now()),
    repair: () => reconcile({ pool: owner.pool, ...workflows, overdueMs: 1_000, signal: new AbortController().signal }),
    setDue: () => owner.pool.query(`update delivery set next_attempt_at = clock_timestamp() - interval '1 minute'`),
    /** As started by a relay long ago. */
    async startStranded(): Promise<void> {
      const input: DeliverEventInput = {
        ...ids,
        eventId,
        round: 1,
        delaysMs: [],
        slow: false,
        type: 'seat.given',
        begunAtMs: 0,
      };
      await startStranded('deliverEvent', workflowIdOf(input, 1), input);
      await owner.pool.query(
        `update delivery set started = true, next_attempt_at = clock_timestamp() - interval '1 minute'`,
      );
    },
    startStrandedRedelivery: (redeliveryId: string) =>
      startStranded('redeliver', `redelivery/${redeliveryId}`, { ...ids, redeliveryId }),
    requestRedelivery: (redeliveryId: string) =>
      owner.pool.query(
        `insert into redelivery (id, organization_id, webhook_id, range_from, range_to)
         values ($1, $2, $3, now() - interval '1 hour', now())`,
        [redeliveryId, ids.organizationId, ids.webhookId],
      ),
  };
}
