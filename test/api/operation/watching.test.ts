/** Metrics, logs and traces for operators, and the values that these must not contain. */
import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { listenLocally } from '#test/listen-locally.ts';
import { setup, setupDatabase, startTestApi } from '#test/setup.ts';

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

it('metrics count requests by operation and status, without an organization, key, person or address', async () => {
  const { api, make } = await setup();
  const creator = await make.member();
  const { key } = await make.apiKey({ creator });
  await api.get(`/v1/orgs/${creator.orgId}`, { key });
  await api.get(`/v1/orgs/${creator.orgId}/seats`, { key });
  await api.get(`/v1/orgs/${creator.orgId}/seats`, { key });
  await api.get(`/v1/orgs/${creator.orgId}`);
  await api.get(`/v1/anything/${creator.userId}`);

  const page = await fetch(`${api.metricsUrl}/metrics`);
  expect(page.headers.get('content-type')).toMatch(/^text\/plain/);
  const text = await page.text();
  for (const [operation, status, count] of [
    ['getOrg', 200, 1],
    ['getOrgSeats', 200, 2],
    ['getOrg', 401, 1],
    ['none', 404, 1],
  ])
    expect(text).toContain(
      `org_api_request_duration_seconds_count{operation="${operation}",status="${status}"} ${count}\n`,
    );
  for (const series of [
    'org_api_limiter_without_redis 0',
    'org_api_failed_authentications_total 1',
    'org_api_audit_entries_per_insert_count',
    'org_api_database_connections{state="open"}',
    'process_cpu_seconds_total',
    'nodejs_eventloop_lag_seconds',
  ])
    expect(text).toContain(series);
  expect(text).not.toMatch(uuid);
  for (const secret of [key.slice(7, 20), creator.userId, '127.0.0.1', 'Harbor']) expect(text).not.toContain(secret);

  expect((await fetch(`${api.metricsUrl}/`)).status).toBe(404);
  expect((await api.get('/metrics')).status).toBe(404); // not on the port that partners reach
});

it('the log has one JSON line for each request, without a key, body, name, path or address', async () => {
  const { api, make, logLines } = await setup();
  const creator = await make.member({ name: 'Zelda Quill' });
  const { id, key } = await make.apiKey({ creator });
  const grant = await make.grant({
    professional: creator,
    familyId: await make.family({ orgId: creator.orgId, name: 'Okonkwo family' }),
  });
  const responses = [
    await api.get(`/v1/orgs/${creator.orgId}/clients`, { key }),
    await api.get(`/v1/orgs/${creator.orgId}/clients?token=${key}`, { key }),
    await api.get(`/nowhere/${key}`),
    await api.get(`/v1/orgs/${creator.orgId}/clients`, { key: `${key}0`, headers: { 'user-agent': key, cookie: key } }),
  ];
  expect(await responses[0]?.text()).toContain('Okonkwo');
  const lines = logLines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ msg }) => msg === 'request');
  expect(lines).toEqual(
    responses.map((response) =>
      expect.objectContaining({
        requestId: response.headers.get('request-id'),
        status: response.status,
        method: 'GET',
      }),
    ),
  );
  expect(lines[0]).toEqual({
    level: 'info',
    app: 'api',
    region: 'us',
    msg: 'request',
    time: expect.stringMatching(/Z$/),
    requestId: responses[0]?.headers.get('request-id'),
    method: 'GET',
    operation: 'getFirmRoster',
    status: 200,
    organizationId: creator.orgId,
    keyId: id,
    limitLeft: 119,
    durationMs: expect.any(Number),
  });
  for (const secret of [key.slice(7), key.slice(7, 20), 'Zelda', 'Okonkwo', creator.userId, grant.familyId, 'nowhere'])
    expect(logLines.join('')).not.toContain(secret);
});

it('request traces reach the OTLP endpoint, and contain only ids and statuses', async () => {
  const received: string[] = [];
  const collector = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      received.push(`${request.method} ${request.url} ${Buffer.concat(parts).toString('latin1')}`);
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
    });
  });
  const port = await listenLocally(collector);
  const { database, make } = await setupDatabase();
  const api = await startTestApi(database, { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` });
  const creator = await make.member();
  const { key } = await make.apiKey({ creator });
  const response = await api.get(`/v1/orgs/${creator.orgId}`, { key });
  await api.stop(); // sends the remaining spans

  const text = received.join('\n');
  expect(text).toMatch(/^POST \/v1\/traces /);
  for (const part of [
    'limiter',
    'statement',
    'audit_log',
    'org-api-api',
    'getOrg',
    response.headers.get('request-id') ?? '',
  ])
    expect(text).toContain(part);
  for (const secret of [key.slice(7, 20), creator.userId, 'Harbor']) expect(text).not.toContain(secret);
});

it('an unreachable OTLP endpoint delays no response and no stop', async () => {
  const { database, make } = await setupDatabase();
  const api = await startTestApi(database, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
  const { key, orgId } = await make.apiKey();
  expect((await api.get(`/v1/orgs/${orgId}`, { key })).status).toBe(200);
  await api.stop();
});
