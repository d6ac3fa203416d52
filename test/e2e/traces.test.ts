import { expect, it, vi } from 'vitest';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTestWorker } from '#test/worker.ts';
import { startCollector } from './collector.ts';

const timeout = 60_000;
const patient = { timeout: 20_000, interval: 50 };
/** Times are sent in nanoseconds and read as milliseconds, so the last digits of a float differ. */
const roundingMs = 0.01;

it('a delivery that fails and then succeeds is one trace from its commit to the 2xx, which is found by its event’s id', {
  timeout,
}, async () => {
  const { database, owner, make } = await setupDatabase();
  const collector = await startCollector();
  const receiver = await startReceiver();
  receiver.respond = (response) =>
    void response.writeHead(receiver.received.length === 1 ? 503 : 200).end('a response to keep to ourselves');
  const professional = await make.member({ name: 'Zelda Quill' });
  const webhook = await make.webhook({ orgId: professional.orgId, url: `${receiver.url}/hooks/path-of-theirs` });
  const worker = await startTestWorker(database, {
    DELIVERY_SCHEDULE: '200ms,1h',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  });
  const familyId = await make.family({ orgId: professional.orgId, name: 'Okonkwo family' });
  const grant = await make.grant({ professional, familyId });
  await vi.waitFor(async () => {
    const { rows } = await owner.pool.query('select state from delivery');
    expect(rows).toEqual([{ state: 'delivered' }]);
  }, patient);
  await vi.waitFor(() => expect(listRoots(collector, professional.orgId)).toHaveLength(1), patient);
  await worker.stop(); // sends the remaining spans

  const { rows } = await owner.pool.query<{ id: string; createdAtMs: number; body: string }>(
    'select id, (extract(epoch from created_at) * 1000)::float8 as "createdAtMs", body from event',
  );
  const [event] = rows;
  const spans = listSpans(collector, professional.orgId);
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([event?.id.replaceAll('-', '')]));
  expect(new Set(spans.map(({ service }) => service))).toEqual(new Set(['org-api-worker']));
  const [root, ...more] = listRoots(collector, professional.orgId);
  expect(more).toEqual([]);
  const ids = {
    'org_api.organization_id': professional.orgId,
    'org_api.webhook_id': webhook.id,
    'org_api.event_id': event?.id,
    'org_api.run': 1,
    'org_api.event_type': 'client.started',
  };
  expect(root).toMatchObject({ name: 'delivery', isError: false });
  expect(Math.abs((root?.startMs ?? 0) - (event?.createdAtMs ?? 0))).toBeLessThan(roundingMs);
  expect(root?.attributes).toEqual({ ...ids, 'org_api.outcome': 'delivered' });

  const children = spans
    .filter(({ parentSpanId }) => parentSpanId === root?.spanId)
    .sort((a, b) => a.startMs - b.startMs);
  expect(children).toHaveLength(spans.length - 1);
  expect(children.map(({ name }) => name)).toEqual(['delivery.start', 'delivery.attempt', 'delivery.attempt']);
  const [start, failed, accepted] = children;
  expect(start?.events.map(({ name }) => name)).toEqual(['claimed']);
  expect(failed).toMatchObject({ isError: true, events: [{ name: 'connect' }, { name: 'first_byte' }] });
  expect(failed?.attributes).toEqual({
    ...ids,
    'org_api.attempt': 1,
    'org_api.outcome': 'failed',
    'org_api.cause': 'answered_unavailable',
    'http.response.status_code': 503,
  });
  expect(accepted).toMatchObject({ isError: false });
  expect(accepted?.attributes).toEqual({
    ...ids,
    'org_api.attempt': 2,
    'org_api.outcome': 'delivered',
    'org_api.cause': 'accepted',
    'http.response.status_code': 200,
  });
  expect(accepted?.startMs).toBeGreaterThanOrEqual((failed?.endMs ?? 0) + 200 - roundingMs);
  expect(root?.endMs).toBeGreaterThanOrEqual((accepted?.endMs ?? Number.POSITIVE_INFINITY) - roundingMs);
  for (const { startMs, endMs, events } of children)
    for (const { atMs } of events) {
      expect(atMs).toBeGreaterThanOrEqual(startMs - roundingMs);
      expect(atMs).toBeLessThanOrEqual(endMs + roundingMs);
    }

  const bytes = collector.bytes().toString('latin1');
  const planted = [
    webhook.secret,
    webhook.secret.slice('whsec_'.length),
    'path-of-theirs',
    '127.0.0.1',
    'Zelda',
    'Okonkwo',
    'a response to keep to ourselves',
    grant.id,
    familyId,
    professional.userId,
    event?.body ?? '',
  ];
  for (const text of planted) {
    expect(bytes).not.toContain(text);
    expect(bytes).not.toContain(Buffer.from(text).toString('base64').replace(/=+$/, ''));
    expect(bytes).not.toContain(Buffer.from(text).toString('hex'));
  }
});

it('a delivery whose webhook is paused while it waits ends its trace as closed', { timeout }, async () => {
  const { database, owner, make } = await setupDatabase();
  const collector = await startCollector();
  const receiver = await startReceiver();
  receiver.respond = (response) => void response.writeHead(500).end();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const worker = await startTestWorker(database, {
    DELIVERY_SCHEDULE: '2s',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  });
  await make.grant({ professional });
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), patient);
  await owner.pool.query(`update webhook set state = 'paused'`);
  await vi.waitFor(() => expect(listRoots(collector, professional.orgId)).toHaveLength(1), patient);
  await worker.stop();
  expect(listRoots(collector, professional.orgId).map(({ attributes }) => attributes['org_api.outcome'])).toEqual([
    'stopped',
  ]);
});

it('an unreachable trace endpoint delays no delivery and no stop', { timeout }, async () => {
  const { database, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const worker = await startTestWorker(database, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
  await make.grant({ professional });
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), patient);
  await worker.stop();
});

/**
 * The spans of this test's organization. Tests of a process share a Temporal namespace, and a later
 * worker may end a delivery that an earlier test left waiting.
 */
const listSpans = (collector: Collector, organizationId: string) =>
  collector.spans().filter(({ attributes }) => attributes['org_api.organization_id'] === organizationId);

const listRoots = (collector: Collector, organizationId: string) =>
  listSpans(collector, organizationId).filter(({ parentSpanId }) => parentSpanId === undefined);

type Collector = Pick<Awaited<ReturnType<typeof startCollector>>, 'spans'>;
