/** Bytes that are not one plain HTTP request, sent to the API and to the console. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { setup } from '#test/setup.ts';
import { setupConsole } from '../console/setup.ts';
import { ambiguousRequests, otherForms, wholeRequests } from './http/framings.ts';
import { type RawResponse, readResponses, sendBytes } from './http/responses.ts';
import { listErrors, reportTried, seed, tries } from './tried.ts';

const tried = reportTried('HTTP framing');
const next = 'GET /livez HTTP/1.1\r\nHost: next\r\nConnection: close\r\n\r\n';

const apps = {
  API: async () => {
    const { api, logLines } = await setup();
    return { url: api.url, logLines };
  },
  console: async () => {
    const { console: app, logLines } = await setupConsole();
    return { url: app.url, logLines };
  },
};

describe.each(Object.entries(apps))('the %s', (app, start) => {
  it('answers a request once whose body looks like another request, and then the next one', async () => {
    const { url } = await start();
    for (const [what, bytes] of Object.entries(wholeRequests)) {
      const responses = readResponses(await sendBytes(url, bytes + (what.includes('1.0') ? '' : next)));
      const statuses = responses.map(({ status }) => status);
      tried('requests with a request inside');
      expect([what, statuses.length]).toEqual([what, what.includes('1.0') ? 1 : 2]);
      expect([what, statuses[0]]).not.toEqual([what, 200]);
      for (const response of responses.slice(0, 1)) expectOwnForm(app, what, response);
    }
  });

  it('never reads a second request out of one whose length is ambiguous', async () => {
    const { url, logLines } = await start();
    for (const [what, bytes] of Object.entries(ambiguousRequests)) {
      const responses = readResponses(await sendBytes(url, bytes));
      tried('ambiguous requests');
      // The head may be answered before the body turns out to be malformed, which ends the connection.
      const statuses = responses.map(({ status }) => status);
      expect([what, statuses]).toEqual([what, expect.toSatisfy(isOneRejection)]);
      for (const response of responses) expectOwnForm(app, what, response);
    }
    expectNoFault(logLines);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  });

  it('answers other forms of a request itself, and leaves HTTP/1.1 for none', async () => {
    const { url } = await start();
    for (const [what, bytes] of Object.entries(otherForms)) {
      const responses = readResponses(await sendBytes(url, bytes));
      tried('other forms');
      expect([what, responses.length]).toEqual([what, 1]);
      for (const response of responses) {
        expect([what, response.status >= 400 && response.status < 500]).toEqual([what, true]);
        expectOwnForm(app, what, response);
      }
    }
  });

  it('answers 16 requests that are sent at once in their order, and cuts a connection that sends more', async () => {
    const { url } = await start();
    const paths = Array.from({ length: 16 }, (_, index) => (index % 3 === 0 ? '/livez' : '/nowhere'));
    const bytes = paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join('');
    const responses = readResponses(await sendBytes(url, bytes));
    expect(responses.map(({ status }) => status)).toEqual(paths.map((path) => (path === '/livez' ? 200 : 404)));
    expect(readResponses(await sendBytes(url, bytes.repeat(10))).length).toBeLessThanOrEqual(paths.length);
    tried('pipelined requests', 11 * paths.length);
  });

  it('closes or answers in its own form whatever bytes are changed, and serves the next caller', async () => {
    const { url, logLines } = await start();
    const whole = fc.constantFrom(...Object.values({ ...wholeRequests, ...otherForms }));
    const piece = fc.constantFrom(
      '\r',
      '\n',
      '\r\n',
      '\0',
      ' ',
      '\t',
      ':',
      ',',
      ';',
      '0',
      'x',
      '\xff',
      'HTTP/1.1',
      'chunked',
    );
    const change = fc.record({ at: fc.double({ min: 0, max: 1, noNaN: true }), cut: fc.nat(3), piece });
    const property = fc.asyncProperty(
      whole,
      fc.array(change, { minLength: 1, maxLength: 4 }),
      async (bytes, changes) => {
        const altered = changes.reduce((text, { at, cut, piece: added }) => {
          const index = Math.floor(at * text.length);
          return text.slice(0, index) + added + text.slice(index + cut);
        }, bytes);
        const responses = readResponses(await sendBytes(url, altered));
        tried('altered requests');
        for (const response of responses) {
          expect(response.status).toBeLessThan(500);
          expectOwnForm(app, altered, response);
        }
      },
    );
    await fc.assert(property, { seed, numRuns: tries(400) });
    expectNoFault(logLines);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  });
});

/** Whether one request was rejected, and then perhaps the connection. */
const isOneRejection = ([first = 400, second = 400, ...more]: number[]) =>
  first >= 400 && first < 500 && second === 400 && more.length === 0;

/**
 * The API answers in JSON with a code; the console with a page, or in JSON where no page can be.
 */
function expectOwnForm(app: string, what: string, { status, headers, body }: RawResponse): void {
  expect([what, headers.get('x-content-type-options')]).toEqual([what, 'nosniff']);
  if (status === 200) return; // a probe
  expect([what, headers.get('request-id')]).toEqual([what, expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  const type = headers.get('content-type') ?? '';
  if (type.startsWith('application/json'))
    expect(JSON.parse(body)).toMatchObject({
      error: expect.stringMatching(/^\w+$/),
      message: expect.stringMatching(/\S/),
    });
  else expect([what, app, status, type]).toEqual([what, 'console', status, 'text/html; charset=utf-8']);
}

/** No request caused an error that is not the client's. */
function expectNoFault(logLines: readonly string[]): void {
  expect(listErrors(logLines)).toEqual([]);
}
