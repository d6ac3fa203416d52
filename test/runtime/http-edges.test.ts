/** Requests at the edges of HTTP, as raw bytes, to the API and to the console. */
import { expect, it } from 'vitest';
import { sendRaw } from '#test/exchange.ts';
import { expectFault } from '#test/expect-fault.ts';
import { setup, shareApi } from '#test/setup.ts';
import { shareConsole } from '../console/setup.ts';

const sharedApi = shareApi();
const sharedConsole = shareConsole();
const apps = () => {
  const { api, logLines } = sharedApi();
  const { console, logLines: consoleLines } = sharedConsole();
  return [
    { url: api.url, lines: logLines, form: 'json' },
    { url: console.url, lines: consoleLines, form: 'page' },
  ] as const;
};

const request = (line: string, ...headers: string[]) => `${[`${line} HTTP/1.1`, ...headers].join('\r\n')}\r\n\r\n`;

const faults: [what: string, status: number, bytes: string][] = [
  ['no Host', 400, request('GET /livez')],
  ['two Hosts', 400, request('GET /livez', 'Host: a', 'Host: b')],
  ['the same Host twice', 400, request('GET /livez', 'Host: a', 'host: a')],
  ['two Hosts in HTTP/1.0', 400, 'GET /livez HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n'],
  ['two Hosts around 1,200 headers', 400, request('GET /livez', 'Host: a', ...Array(1_200).fill('a:'), 'Host: b')],
  ['a Host with a path', 400, request('GET /livez', 'Host: a/b')],
  ['a Host with a login', 400, request('GET /livez', 'Host: a@b')],
  ['a Host that is a list', 400, request('GET /livez', 'Host: a, b')],
  ['an unknown expectation', 417, request('GET /livez', 'Host: a', 'Expect: much')],
  ['CONNECT without Host', 400, request('CONNECT a:443')],
  ['a target with a login', 400, request('GET http://a:b@c/livez', 'Host: c')],
  ['a target without a host', 400, request('GET http:///livez', 'Host: a')],
  ['a target of another scheme', 400, request('GET ftp://a/livez', 'Host: a')],
  ['a relative target', 400, request('GET livez', 'Host: a')],
  ['the preface of HTTP/2', 400, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['an unknown version', 400, 'GET /livez HTTP/3.7\r\nHost: a\r\n\r\n'],
  ['an unknown method', 400, request('FOO /', 'Host: a')],
  ['TLS', 400, '\x16\x03\x01\x02\x00\x01\x00\x01\x03\x03'],
  ['a line without a colon', 400, request('GET /livez', 'Host: a', 'nonsense')],
  ['a space before a colon', 400, request('GET /livez', 'Host : a')],
  ['a folded header', 400, request('GET /livez', 'Host: a', 'X: a', ' b')],
  ['a NUL in a header', 400, request('GET /livez', 'Host: a', 'X: a\0b')],
  ['lines that end with LF', 400, 'GET /livez HTTP/1.1\nHost: a\n\n'],
  ['two lengths', 400, request('POST /', 'Host: a', 'Content-Length: 5', 'Content-Length: 6')],
  ['a length and chunks', 400, request('POST /', 'Host: a', 'Content-Length: 5', 'Transfer-Encoding: chunked')],
  ['headers of 20 KB', 431, request('GET /livez', 'Host: a', `X: ${'x'.repeat(20_000)}`)],
  ['a target of 20 KB', 431, request(`GET /${'x'.repeat(20_000)}`, 'Host: a')],
];

it.each(faults)('%s: %i in the form of the app, with an id and its line in the log', async (_what, status, bytes) => {
  for (const { url, lines, form } of apps())
    expectFault({ response: await sendRaw(url, bytes), lines }, { status, form });
});

it('CONNECT gets 405 in the form of the app, with an id and its line in the log', async () => {
  for (const { url, lines, form } of apps()) {
    const response = await sendRaw(url, request('CONNECT a:443', 'Host: a:443', 'Connection: close'));
    expectFault({ response, lines }, { status: 405, form, code: 'method_not_allowed' });
    expect(response).toMatch(/\r\nallow: .*GET/i);
  }
});

it('a genuine key is recorded as used by CONNECT, as by any request that it does not open, but not by invalid HTTP', async () => {
  const { api, make, owner } = await setup();
  const { key, id } = await make.apiKey();
  const headers = ['Host: a:443', 'Connection: close', `Authorization: Bearer ${key}`];
  expect(await sendRaw(api.url, request('CONNECT a:443', ...headers))).toContain('"error":"api_key_not_accepted"');
  const fault = await sendRaw(api.url, request('GET /v1/orgs/x', ...headers, 'Expect: much'));
  expect(fault).toMatch(/^HTTP\/1\.1 417 /);
  expect(fault).not.toMatch(/\r\nratelimit/i);
  const { rows } = await owner.pool.query('select detail from audit_entry where key_id = $1 and action like $2', [
    id,
    'api.%',
  ]);
  expect(rows).toHaveLength(1);
});

it('a whole URL as target, HTTP/1.0, an offered upgrade and a body that waits for 100 are answered as usual', async () => {
  const close = 'Connection: close';
  const usual = [
    request('GET http://a.example/livez', 'Host: a', close),
    request('GET HTTPS://[::1]:8443/livez', 'Host: [::1]:8443', close),
    'GET /livez HTTP/1.0\r\n\r\n',
    request('GET /livez', 'Host:', close),
    request('GET /livez', 'Host: a', 'Connection: Upgrade, close', 'Upgrade: websocket'),
    request('GET /livez', 'Host: a', 'Connection: Upgrade, HTTP2-Settings, close', 'Upgrade: h2c', 'HTTP2-Settings: A'),
    request('GET /livez', 'Host: a', 'Expect: 100-Continue', close),
  ];
  for (const { url } of apps()) {
    for (const bytes of usual)
      expect(await sendRaw(url, bytes)).toMatch(/HTTP\/1\.1 200 OK\r\n[\s\S]*\{"status":"ok"\}$/);
  }
});

it('the metrics’ server answers faults too', async () => {
  const { api } = sharedApi();
  expect(await sendRaw(api.metricsUrl, request('GET /metrics'))).toMatch(
    /^HTTP\/1\.1 400 [\s\S]*"Send the header Host\."/,
  );
  expect(await sendRaw(api.metricsUrl, 'nonsense\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 [\s\S]*not well-formed/);
});
