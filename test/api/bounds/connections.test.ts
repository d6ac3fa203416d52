/** Limits on what a client can hold with its connections alone, and the headers of every response. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { constants } from '#test/constants.ts';
import { sendRaw } from '#test/exchange.ts';
import { expectFault } from '#test/expect-fault.ts';
import { setup } from '#test/setup.ts';
import { setupConsole } from '../../console/setup.ts';
import { untilFigures } from './figures.ts';
import { openReader } from './readers.ts';

vi.setConfig({ testTimeout: 90_000 });

it('every response has HSTS and its own content type: reads, error responses and pages', async () => {
  const { api, make } = await setup();
  const { key, orgId } = await make.apiKey();
  const responses = await Promise.all([
    api.get(`/v1/orgs/${orgId}`, { key }),
    api.get(`/v1/orgs/${orgId}`, { key, headers: { 'if-none-match': '*' } }),
    api.get('/v1/orgs/x', { key }),
    api.get(`/v1/orgs/${orgId}`),
    api.get(`/v1/orgs/${orgId}`, { key, method: 'POST' }),
    api.get('/nowhere'),
    api.get('/livez'),
    ...['/v1/openapi.json', '/docs', '/docs/reference.js', '/docs/reference.css'].map((path) => api.get(path)),
  ]);
  expect(responses.map(({ status }) => status)).toEqual([200, 304, 400, 401, 403, 404, 200, 200, 200, 200, 200]);
  for (const { headers } of responses) {
    expect(headers.get('strict-transport-security')).toBe('max-age=63072000; includeSubDomains');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  }
});

it('a slow request gets 408 in the form of the API or the console, a client that sends nothing is disconnected, and a trusted proxy’s unused connection is kept', async () => {
  const brief = { headersTimeoutMs: 3_000, unknownKeepAliveSeconds: 3 };
  const trusted = '127.0.0.2';
  const { api, make, logLines } = await setup({ TRUSTED_PROXIES: trusted, [constants]: brief });
  const pages = await setupConsole({ [constants]: brief });
  const { key, orgId } = await make.apiKey();
  const proxy = connect({ port: Number(new URL(api.url).port), host: '127.0.0.1', localAddress: trusted });
  onTestFinished(() => void proxy.destroy());
  let received = '';
  proxy.setEncoding('utf8').on('data', (part: string) => {
    received += part;
  });
  await once(proxy, 'connect');

  const unfinished = 'GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: ';
  const [slow, slowPage, silent] = await Promise.all([
    sendRaw(api.url, unfinished),
    sendRaw(pages.console.url, unfinished),
    sendRaw(api.url, ''),
  ]);
  expectFault({ response: slow, lines: logLines }, { status: 408, form: 'json' });
  expectFault({ response: slowPage, lines: pages.logLines }, { status: 408, form: 'page' });
  // A proxy that sends a request at that moment would take the 408 as its response, and not try
  // again.
  expect(silent).toBe('');

  // The connection has been open for longer than either timeout.
  proxy.write(`GET /v1/orgs/${orgId} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  await expect.poll(() => received, { timeout: 30_000 }).toContain(orgId);
  expect(received).toMatch(/^HTTP\/1\.1 200 OK/);
  proxy.destroy();
  await untilFigures(api.metricsUrl, ({ connections }) => connections === 0);
});

it('a client that continues to send after its response is disconnected, known or not, and one that has sent all is not', async () => {
  const never = 600_000;
  const { api, make } = await setup({ [constants]: { headersTimeoutMs: never } });
  const { key, orgId } = await make.apiKey();
  const idle = await openReader(api.url, { path: '/livez' });
  for (const path of ['/', `/v1/orgs/${orgId}`]) {
    const client = connect({ port: Number(new URL(api.url).port), host: '127.0.0.1' });
    onTestFinished(() => void client.destroy());
    let received = '';
    client.setEncoding('utf8').on('data', (part: string) => {
      received += part;
    });
    client.on('error', () => {}); // it is closed while it sends
    const chunks = '1\r\nx\r\n'.repeat(10_000);
    const send = () => client.write(chunks, () => void (client.destroyed || setImmediate(send)));
    client.write(
      `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    send();
    await new Promise((closed) => client.once('close', closed));
    expect(received).toMatch(path === '/' ? /^HTTP\/1\.1 404/ : /^HTTP\/1\.1 200/);
  }
  expect(idle.isClosed).toBe(false);
});

it('idle connections are closed for new ones when the connection limit is reached', async () => {
  const { api } = await setup({ MAX_CONNECTIONS: '20' });
  for (let n = 0; n < 20; n += 1) await openReader(api.url, { path: '/livez' });
  await untilFigures(api.metricsUrl, ({ connections }) => connections === 20);
  const rejected = await openReader(api.url, { path: '/livez' });
  await untilFigures(api.metricsUrl, ({ connections }) => connections === 0);
  expect(rejected.status).toBeNull();
  expect((await api.get('/livez')).status).toBe(200);
});

it('a client that pipelines requests and reads nothing is disconnected at once; one that reads steadily is not', async () => {
  const { api } = await setup({ [constants]: { minBytesPerSecond: 20_000 } });
  const path = '/docs';
  const steady = await openReader(api.url, { path, bytesPerSecond: 100_000, times: 6 });
  await openReader(api.url, { path: '/docs', bytesPerSecond: 0, times: 500 });
  for (let n = 0; n < 3; n += 1) await openReader(api.url, { path: '/docs/icon.svg', bytesPerSecond: 0, times: 10 });
  const figures = await untilFigures(api.metricsUrl, ({ cut }) => cut.pipelined === 1);
  expect(figures.cut).toEqual({ pipelined: 1 });
  expect(steady.isClosed).toBe(false);
});
