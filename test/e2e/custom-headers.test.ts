/** Custom headers of a webhook, from the console to the receiver, and nowhere else. */
import { expect, inject, it, vi } from 'vitest';
import { callOrgctl } from '#test/orgctl.ts';
import { startReceiver } from '#test/receiver.ts';
import { testWebhookSecretKeys } from '#test/secrets.ts';
import { dumpTables, listTraces, readServerLog, readTemporalStore } from '#test/traces.ts';
import { startTestWorker, testNamespace } from '#test/worker.ts';
import { setupConsole } from '../console/setup.ts';
import { insertWebhook } from '../console/webhook-stories.ts';
import { startCollector } from './collector.ts';

const timeout = 300_000;
const patient = { timeout: 60_000, interval: 50 };
const value = 'Bearer Zq7-marker-of-the-gateway-77';
const another = 'Bearer Zq7-marker-of-tomorrow-78';
const traces = [value, another, 'Zq7-marker'].flatMap(listTraces);
const tracesIn = (text: string) => traces.filter((trace) => text.includes(trace));

it('reach the receiver with every attempt, test event and signature check, and their values nothing else', {
  timeout,
}, async () => {
  const temporal = { TEMPORAL_ADDRESS: inject('temporalAddress'), TEMPORAL_NAMESPACE: testNamespace() };
  const t = await setupConsole(temporal);
  const collector = await startCollector();
  const receiver = await startReceiver();
  // Gateways reject what has another value: a retry has the header, too.
  receiver.respond = (response, { headers }) =>
    void response.writeHead(headers.authorization === value && receiver.received.length !== 1 ? 200 : 503).end('seen');
  const worker = await startTestWorker(t.database, {
    DELIVERY_SCHEDULE: '100ms,1h',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  });
  const ada = await t.enrol({ name: 'Ada Rivers' });
  const webhook = await insertWebhook(t, ada, { url: `${receiver.url}/in` });
  const visitor = t.http(ada);
  const at = (rest: string) => `/o/${ada.orgId}/webhooks/${webhook.id}${rest}`;
  const set = (fields: Record<string, string>) => visitor.submit(at('/headers'), at('/headers'), fields);
  const pages: string[] = [];
  const keep = (visited: { text: string }) => void pages.push(visited.text);

  expect((await set({ name: 'Authorization', value })).to).toBe(at('/headers'));
  const rejected = await set({ name: 'Content-Type', value });
  expect([rejected.status, rejected.text.includes('You can’t set Content-Type')]).toEqual([422, true]);
  keep(rejected);
  keep(await set({ name: 'X Key', value: another }));
  keep(await set({ name: 'X-Key', value: `${another}\r\nX-Other: 1` }));

  await t.make.grant({ professional: await t.make.member({ orgId: ada.orgId }) });
  await vi.waitFor(async () => {
    const { rows } = await t.owner.pool.query('select state, attempts from delivery');
    expect(rows).toEqual([{ state: 'delivered', attempts: 2 }]);
  }, patient);
  keep(await visitor.submit(at('/test'), at('/test'), { type: 'client.started' }));
  keep(await visitor.submit(at('/verify'), at('/verify')));
  // Two attempts, a test event, and a correctly and a wrongly signed one.
  expect(receiver.received).toHaveLength(5);
  const every = { authorization: value, 'content-type': 'application/json', 'webhook-endpoint': webhook.id };
  for (const { headers } of receiver.received) expect(headers).toMatchObject(every);

  expect((await set({ name: 'AUTHORIZATION', value: another })).to).toBe(at('/headers'));
  const env = {
    DATABASE_URL: t.database.ownerUrl,
    REGION: 'us',
    WEBHOOK_ALLOW: '127.0.0.0/8',
    WEBHOOK_SECRET_KEYS: testWebhookSecretKeys,
    ...temporal,
  };
  const calls = [
    await callOrgctl(env, ['webhook', 'list', '--org', ada.orgId, '--json']),
    await callOrgctl(env, ['webhook', 'show', '--webhook', webhook.id]),
    await callOrgctl(env, ['webhook', 'change', '--webhook', webhook.id, '--url', 'https://hooks.example.org/']),
  ];
  expect(calls[0]?.json()).toMatchObject([{ headerNames: ['AUTHORIZATION'] }]);
  expect(calls[2]).toMatchObject({ code: 1, stderr: expect.stringContaining('the values of AUTHORIZATION') });
  const { rows: attempts } = await t.owner.pool.query<{ event: string; number: number }>(
    'select event_id as event, number from delivery_attempt order by number',
  );
  for (const rest of ['', '?tab=settings', '/edit', '/headers', '/delete', `/deliveries/${attempts[0]?.event}`])
    keep(await visitor.get(at(rest)));
  for (const { event, number } of attempts) keep(await visitor.get(at(`/deliveries/${event}/attempts/${number}`)));
  expect(pages.at(-1)).toContain('Authorization: (custom header, value not recorded)');
  keep(await visitor.get(`/o/${ada.orgId}/audit-log`));
  const readMetrics = async (url: string) => (await fetch(new URL('/metrics', url))).text();
  const metrics = [await readMetrics(worker.metricsUrl), await readMetrics(t.console.metricsUrl)];
  const store = await readTemporalStore(t);
  await worker.stop(); // sends the remaining spans

  const tables = await dumpTables(t, { statistics: true });
  const places = {
    tables: [...tables].filter(([, text]) => tracesIn(text).length > 0).map(([name]) => name),
    temporal: tracesIn(store),
    logs: tracesIn([...t.logLines, ...worker.logLines].join('\n')),
    serverLog: tracesIn(await readServerLog(t)),
    metrics: tracesIn(metrics.join('\n')),
    spans: tracesIn(collector.bytes().toString('latin1')),
    pages: tracesIn(pages.join('\n')),
    orgctl: tracesIn(JSON.stringify(calls)),
  };
  expect(places).toEqual({
    tables: [],
    temporal: [],
    logs: [],
    serverLog: [],
    metrics: [],
    spans: [],
    pages: [],
    orgctl: [],
  });
  // All of them wrote.
  expect(metrics.every((text) => text.includes('org_api_'))).toBe(true);
  expect(store).toContain(webhook.id);
  expect(collector.bytes().toString()).toContain(webhook.id);
  expect(tables.get('public.webhook')).toContain('AUTHORIZATION');
});
