import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, inject, it, vi } from 'vitest';
import { spawnWorker, startChildWorker } from '#test/child-worker.ts';
import { type Received, startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTcpProxy } from '#test/tcp-proxy.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { startTestWorker, workerEnvironment } from '#test/worker.ts';
import { type DeliveryId, getWorkflowId } from '#workflows/deliver-event/types.ts';

const timeout = 240_000;
const unavailableMs = 2_000;
/**
 * Longest allowed pause between posts once the lost server is back. The step of a workflow whose
 * worker was killed is given to another after 5 s, and a claim expires after 10 s, the longest of
 * the waits; the rest is for a busy machine.
 */
const silenceAtMostMs = 20_000;
const patient = { timeout: 90_000, interval: 50 };

describe('due deliveries are sent soon, and every post is on record,', () => {
  it('after PostgreSQL was down for two seconds', { timeout }, async () => {
    const world = await arrange(500);
    const target = new URL(world.database.urls.worker);
    const proxy = await startTcpProxy({ host: target.hostname, port: Number(target.port) });
    const url = Object.assign(new URL(target), { hostname: '127.0.0.1', port: String(proxy.port) });
    await startTestWorker(world.database, { WORKER_DATABASE_URL: url.href });
    await judgeOutage(world, proxy);
  });

  it('after Temporal was down for two seconds', { timeout }, async () => {
    const world = await arrange(200);
    const [host = '', port = ''] = inject('temporalAddress').split(':');
    const proxy = await startTcpProxy({ host, port: Number(port) });
    await startTestWorker(world.database, { TEMPORAL_ADDRESS: `127.0.0.1:${proxy.port}` });
    await judgeOutage(world, proxy);
  });

  it('after the only worker was killed with claims and attempts in progress', { timeout }, async () => {
    const world = await arrange(200);
    const killed = await startChildWorker(workerEnvironment(world.database));
    await world.grants();
    await world.someDelivered();
    killed.process.kill('SIGKILL');
    await killed.ended;
    const next = spawnWorker(workerEnvironment(world.database));
    await vi.waitFor(() => expect(next.lines.join('')).toContain('"the worker is running"'), patient);
    await world.judge();
  });

  it('after the only worker was killed between the start of a workflow and its first admission', {
    timeout,
  }, async () => {
    const world = await arrange(1);
    const killed = await startChildWorker(workerEnvironment(world.database));
    const unblock = await world.blockAdmissions();
    await world.grants();
    await world.admissionWaits();
    killed.process.kill('SIGKILL');
    await killed.ended;
    await unblock();
    const { events } = await world.history();
    expect(Number(events?.[0]?.workflowExecutionStartedEventAttributes?.workflowTaskTimeout?.seconds)).toBe(5);
    expect(await world.attempts()).toBe(0);
    await startChildWorker(workerEnvironment(world.database));
    await world.judge();
  });
});

/**
 * Refuses connections through the proxy for a while, after some deliveries, and judges the result
 * of all.
 */
async function judgeOutage(
  world: Awaited<ReturnType<typeof arrange>>,
  proxy: Awaited<ReturnType<typeof startTcpProxy>>,
): Promise<void> {
  await world.grants();
  await world.someDelivered();
  await proxy.reject();
  await wait(unavailableMs);
  await proxy.resume();
  await world.judge();
  expect(await world.lost()).toBe(0);
}

const formatId = (post: Received) => `${post.path}/${post.headers['webhook-id']}/${post.headers['webhook-attempt']}`;

/** Five organizations, each with a webhook, and a number of events among them. */
async function arrange(deliveries: number) {
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  receiver.respond = (response) => void setTimeout(() => response.writeHead(200).end(), 50);
  const professionals = await Promise.all(Array.from({ length: 5 }, () => make.member()));
  for (const { orgId } of professionals) await make.webhook({ orgId, url: `${receiver.url}/${orgId}` });
  const one = async <Row>(query: string) => (await owner.pool.query(query)).rows[0] as Row;
  const settled = async () =>
    (await one<{ count: number }>(`select count(*)::integer as count from delivery where settled_at is not null`))
      .count;
  return {
    database,
    async grants(): Promise<void> {
      for (let nth = 0; nth < deliveries; nth += 1)
        await make.grant({ professional: professionals[nth % 5] as (typeof professionals)[0] });
    },
    /** Blocks admissions until the returned function is called. */
    async blockAdmissions() {
      const blocker = await owner.pool.connect();
      await blocker.query('begin; lock table delivery_attempt in exclusive mode');
      return async () => {
        await owner.pool.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and application_name = 'org-api-worker' and wait_event_type = 'Lock'`,
        );
        await blocker.query('rollback');
        blocker.release();
      };
    },
    admissionWaits: () =>
      vi.waitFor(async () => {
        const waiting = await owner.pool.query(
          `select from pg_locks where relation = 'delivery_attempt'::regclass and not granted`,
        );
        expect(waiting.rowCount).toBeGreaterThan(0);
      }, patient),
    lost: async () => (await owner.pool.query(`select from delivery_attempt where cause = 'lost'`)).rowCount,
    attempts: async () => (await owner.pool.query('select from delivery_attempt')).rowCount,
    async history() {
      const key = await one<DeliveryId>(
        'select organization_id as "organizationId", webhook_id as "webhookId", event_id as "eventId" from delivery',
      );
      const client = await openTestTemporal();
      return client.workflow.getHandle(getWorkflowId(key)).fetchHistory();
    },
    someDelivered: () => vi.waitFor(() => expect(receiver.received.length).toBeGreaterThan(40), patient),
    async judge(): Promise<void> {
      const returnedAt = performance.now();
      await vi.waitFor(async () => expect(await settled()).toBe(deliveries), patient);
      const attempts = await owner.pool.query<{ id: string }>(
        `select '/' || organization_id || '/' || event_id || '/' || number as id from delivery_attempt`,
      );
      const onRecord = new Set(attempts.rows.map(({ id }) => id));
      expect(receiver.received.map(formatId).filter((id) => !onRecord.has(id))).toEqual([]);
      expect(new Set(receiver.received.map(formatId)).size).toBe(receiver.received.length);
      // An attempt whose worker was killed is lost only after the response's deadline.
      const lost = await owner.pool.query<{ event_id: string }>(
        `select event_id from delivery_attempt where cause = 'lost'`,
      );
      const lostEvents = new Set(lost.rows.map(({ event_id }) => event_id));
      const times = receiver.received
        .filter(({ atMs, headers }) => atMs > returnedAt && !lostEvents.has(String(headers['webhook-id'])))
        .map(({ atMs }) => atMs);
      const silences = times.map((atMs, nth) => atMs - (times[nth - 1] ?? returnedAt));
      expect(Math.max(...silences)).toBeLessThan(silenceAtMostMs);
      expect(await one('select count(*)::integer as held from slot')).toEqual({ held: 0 });
    },
  };
}
