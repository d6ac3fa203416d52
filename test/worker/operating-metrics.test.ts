/**
 * Metrics of a worker about Temporal, the audit log's partitions, the limit of erasures and the age
 * of undelivered events; alerts use them.
 */

import { Client } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { Registry } from 'prom-client';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { createTemporalGauges, createTemporalMetrics } from '#delivery/temporal-metrics.ts';
import { appendAuditChainSql } from '#domain/audit-log/chain.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { makeNamespace } from '#test/temporal.ts';
import { openAs } from '#test/webhook-rows.ts';
import { startTestWorker } from '#test/worker.ts';
import { deliverQueue } from '#workflows/deliver-event/types.ts';
import { stateMetrics } from '../../apps/worker/state-metrics.ts';

const timeout = 60_000;
const patient = { timeout: 20_000, interval: 100 };

/** Returns a metric with its labels as written; null when it is missing. */
function find(page: string, name: string): number | null {
  const line = page.split('\n').find((each) => each.startsWith(`${name} `));
  return line === undefined ? null : Number(line.slice(name.length + 1));
}

it('the metrics show what waits in a queue, for how long, and when Temporal last answered', { timeout }, async () => {
  const namespace = await makeNamespace('org-api-backlog');
  const connection = await NativeConnection.connect({ address: inject('temporalAddress') });
  onTestFinished(() => connection.close());
  const registry = new Registry();
  const errors: unknown[] = [];
  let isUnavailable = false;
  const service = connection.workflowService;
  const metrics = createTemporalMetrics({
    call: (send) => (isUnavailable ? connection.withDeadline(1, () => send(service)) : send(service)),
    namespace,
    gauges: createTemporalGauges(registry),
    everyMs: 100,
    onError: (cause: unknown) => errors.push(cause),
  });
  onTestFinished(() => metrics.stop());
  await metrics.start();
  const read = async (name: string) => find(await registry.metrics(), name);
  const workflows = '{kind="workflow"}';
  expect(await read(`org_api_queue_backlog_tasks${workflows}`)).toBe(0);
  expect(await read(`org_api_queue_backlog_age_seconds${workflows}`)).toBe(0);
  expect(await read('org_api_queue_backlog_age_seconds{kind="activity"}')).not.toBeNull();
  const answeredAt = await read('org_api_temporal_answered_timestamp_seconds');
  expect(Math.abs((answeredAt ?? 0) - Date.now() / 1000)).toBeLessThan(60);

  const client = new Client({ connection, namespace });
  const handle = await client.workflow.start('nobodyRunsThis', {
    taskQueue: deliverQueue,
    workflowId: `metrics-${Date.now()}`,
  });
  onTestFinished(async () => void (await handle.terminate()));
  await vi.waitFor(async () => {
    expect(await read(`org_api_queue_backlog_tasks${workflows}`)).toBe(1);
    expect(await read(`org_api_queue_backlog_age_seconds${workflows}`)).toBeGreaterThan(0);
  }, patient);

  isUnavailable = true;
  await vi.waitFor(() => expect(errors.length).toBeGreaterThan(0), patient);
  const last = await read('org_api_temporal_answered_timestamp_seconds');
  const before = errors.length;
  await vi.waitFor(() => expect(errors.length).toBeGreaterThan(before + 1), patient);
  expect(await read('org_api_temporal_answered_timestamp_seconds')).toBe(last);
  await metrics.stop();
  await metrics.stop();
});

it('the metrics show the size of the default partition and how long an entry is not in the chain, and omit them while they cannot be read', async () => {
  const { database, owner, make } = await setupDatabase();
  const orgId = await make.organization();
  const worker = await openAs(database.urls.worker, 1);
  const registry = new Registry();
  const errors: unknown[] = [];
  const metric = stateMetrics(worker, registry, { everyMs: 50, onError: (cause) => errors.push(cause) });
  onTestFinished(() => metric.stop());
  await metric.start();
  const read = async () => find(await registry.metrics(), 'org_api_audit_log_default_partition_bytes');
  const insert = (at: string) =>
    owner.pool.query(`insert into audit_entry (organization_id, action, at) values ($1, 'test', ${at})`, [orgId]);
  const readAge = async () => find(await registry.metrics(), 'org_api_audit_log_unlinked_age_seconds');
  expect(await readAge()).toBe(0);
  await insert(`now() - interval '1 hour'`);
  await vi.waitFor(async () => expect(await readAge()).toBeGreaterThan(3_500), patient);
  expect(await read()).toBe(0);
  // A writer that stays open, as a login could leave it, stops the chain, and the age tells.
  const writer = await owner.pool.connect();
  await writer.query('begin');
  await writer.query(`insert into audit_entry (organization_id, action) values ($1, 'test')`, [orgId]);
  await worker.pool.query(appendAuditChainSql, [100]);
  await vi.waitFor(async () => expect(await readAge()).toBeGreaterThan(3_500), patient);
  await writer.query('commit');
  writer.release();
  await worker.pool.query(appendAuditChainSql, [100]);
  await vi.waitFor(async () => expect(await readAge()).toBe(0), patient);
  await insert(`now() + interval '2 years'`);
  await vi.waitFor(async () => expect(await read()).toBeGreaterThan(0), patient);

  await owner.pool.query('alter table audit_entry_default rename to elsewhere');
  await vi.waitFor(async () => expect([await read(), await readAge()]).toEqual([null, null]), patient);
  expect(errors.length).toBeGreaterThan(0);
  await metric.stop();
  await metric.stop();
});

it('the metrics show how much of its limit of erasures the platform used, and omit it while it cannot be read', async () => {
  const { database, owner, make } = await setupDatabase();
  const orgId = await make.organization();
  const [first, second] = [await make.family({ orgId }), await make.family({ orgId })];
  const worker = await openAs(database.urls.worker, 1);
  const platform = await openAs(database.urls.platform, 1);
  const registry = new Registry();
  const errors: unknown[] = [];
  const metric = stateMetrics(worker, registry, { everyMs: 50, onError: (cause) => errors.push(cause) });
  onTestFinished(() => metric.stop());
  await metric.start();
  const read = async () => find(await registry.metrics(), 'org_api_erasure_limit_used_ratio');
  expect(await read()).toBe(0);
  await owner.pool.query('update erasure_limit set families = 4');
  await platform.pool.query(`select platform.erase_family($1, 'case-1')`, [first]);
  await vi.waitFor(async () => expect(await read()).toBe(0.25), patient);
  // The operator's erasures have no limit, and those of yesterday do not count.
  await owner.pool.query(`select platform.erase($1, 'case-2', 'orgctl')`, [second]);
  await metric.stop();
  await metric.start();
  expect(await read()).toBe(0.25);
  await owner.pool.query(`update erasure set erased_at = erased_at - interval '25 hours'`);
  await vi.waitFor(async () => expect(await read()).toBe(0), patient);

  await owner.pool.query('revoke execute on function erasure_limit_used from org_api_worker');
  await vi.waitFor(async () => expect(await read()).toBeNull(), patient);
  expect(find(await registry.metrics(), 'org_api_audit_log_default_partition_bytes')).toBe(0);
  expect(errors.length).toBeGreaterThan(0);
});

it('the metrics measure from an event to its first attempt only', { timeout }, async () => {
  const { database, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  receiver.respond = (response) => void response.writeHead(receiver.received.length === 1 ? 503 : 204).end();
  const { metricsUrl } = await startTestWorker(database, { DELIVERY_SCHEDULE: '10ms,10ms' });

  await make.grant({ professional });

  const page = async () => (await fetch(`${metricsUrl}/metrics`)).text();
  const name = 'org_api_delivery_first_attempt_delay_seconds';
  await vi.waitFor(
    async () =>
      expect(await page()).toMatch(
        /org_api_delivery_attempt_duration_seconds_count\{outcome="delivered",cause="accepted"\} 1/,
      ),
    patient,
  );
  expect(receiver.received).toHaveLength(2);
  expect(find(await page(), `${name}_count`)).toBe(1);
  const seconds = find(await page(), `${name}_sum`) ?? -1;
  expect(seconds).toBeGreaterThan(0); // by the event's id, which the database's clock generated
  expect(seconds).toBeLessThan(timeout / 1000);
});
