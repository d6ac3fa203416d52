/** The clients against a server with faults: the same guarantees in each language. */
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { listenLocally } from '#test/listen-locally.ts';
import type { ClientSettings, DrivenClient } from './driver.ts';
import { drivers } from './drivers.ts';
import { faultCases } from './fault-cases.ts';
import { startFaultServer } from './fault-server.ts';

const orgId = '0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d';
const key = `aln_us_${'k'.repeat(43)}`;

describe.each(drivers)('the client in $name, against a server with faults,', ({ create, canEnd }) => {
  const open = async (settings: ClientSettings): Promise<DrivenClient> => {
    const client = await create({ key, ...settings });
    if (typeof client === 'string') throw new Error(client);
    return client;
  };

  it.each(faultCases)('$name', async ({ settings = {}, replies, results, waits = [], requests }) => {
    const server = await startFaultServer(replies);
    const client = await open({ ...settings, baseUrl: server.url });
    for (const expected of results) {
      const result = await client.call('getOrg', orgId);
      expect(result).toMatchObject(expected);
      if (result.error?.status === null)
        expect(result.error.message).toMatch(new RegExp(`^No response of ${new URL(server.url).host} [^.]+\\.$`));
    }
    expect(client.waits).toHaveLength(waits.length);
    for (const [index, [from, to]] of waits.entries()) {
      expect(client.waits[index]).toBeGreaterThanOrEqual(from);
      expect(client.waits[index]).toBeLessThanOrEqual(to);
    }
    if (requests !== undefined) expect(server.requests).toHaveLength(requests);
    for (const { path, headers } of server.requests) {
      expect(path).toBe(`/v1/orgs/${orgId}`);
      expect(headers.authorization).toBe(`Bearer ${key}`);
      expect(headers['user-agent']).toMatch(/^org-api-(typescript|python)\/1\.\d+\.\d+$/);
      expect(headers['if-none-match']).toBeUndefined();
    }
    const printed = await client.print();
    expect(printed).not.toContain(key);
    expect(printed).not.toContain('Rossi');
  });

  it.runIf(canEnd).each(['headers', 'body'] as const)(
    'ends a call and its connection when the caller ends it while the %s arrive',
    async (stall) => {
      const server = await startFaultServer([{ status: 200, stall }]);
      const client = await open({ baseUrl: server.url, timeoutSeconds: 3_600 });
      const result = client.call('getOrg', orgId);
      await expect.poll(() => server.requests.length, { timeout: 30_000 }).toBe(1);
      client.end();
      expect(await result).toEqual({ hasEnded: true });
      await expect.poll(server.countConnections, { timeout: 30_000 }).toBe(0);
      expect(server.requests).toHaveLength(1);
    },
  );

  it.runIf(canEnd)('ends a call when the caller ends it during a wait that the server asked for', async () => {
    const server = await startFaultServer([{ status: 429, headers: { 'Retry-After': '3600' } }]);
    const settings = { key, baseUrl: server.url, maxWaitSeconds: 4_000, hasRealWaits: true };
    const client = await create(settings, async () => {
      if (typeof client !== 'string') client.end();
    });
    if (typeof client === 'string') return expect.fail(client);
    expect(await client.call('getOrg', orgId)).toEqual({ hasEnded: true });
    expect([client.waits.length, server.requests.length]).toEqual([1, 1]);
  });

  it('names the host where no server listens, after two more attempts', async () => {
    const unused = createServer();
    const port = await listenLocally(unused);
    await new Promise((resolve) => unused.close(resolve));
    const client = await open({ baseUrl: `http://127.0.0.1:${port}/path` });
    const message = expect.stringMatching(new RegExp(`^No response of 127\\.0\\.0\\.1:${port} \\(\\w+\\)\\.$`));
    expect(await client.call('getOrg', orgId)).toMatchObject({ error: { code: 'connection', status: null, message } });
    expect(client.waits).toHaveLength(2);
  });

  it('names the variable that sets another server when that of its key does not respond', async () => {
    const environment = { https_proxy: 'http://127.0.0.1:9' }; // where nothing listens, for languages that use it
    const client = await open({ maxRetries: 0, environment });
    const { error } = await client.call('getOrg', orgId);
    expect(error?.message).toMatch(/^No response of us\.org-api\.example .+\. .+ set ORG_API_BASE_URL\.$/);
    expect(await client.print()).not.toContain(key);
  });

  it('sends its requests below the path of the base URL', async () => {
    const server = await startFaultServer([{ status: 200, body: '{}' }]);
    const client = await open({ baseUrl: `${server.url}/gateway/` });
    await client.call('getOrg', '../x?y');
    expect(server.requests[0]?.path).toBe('/gateway/v1/orgs/..%2Fx%3Fy');
  });

  it.each([` ${key}\n`, `"${key}"`, `'${key} '`, `\uFEFF${key}\r\n`, `"\uFEFF${key}"`])(
    'reads the key %j without what files and shells add, from its option and from ORG_API_KEY',
    async (given) => {
      const server = await startFaultServer([{ status: 200, body: '{}' }]);
      for (const settings of [{ key: given }, { key: undefined, environment: { ORG_API_KEY: given } }]) {
        const client = await open({ ...settings, baseUrl: server.url });
        await client.call('getOrg', orgId);
      }
      const sent = server.requests.map(({ headers }) => headers.authorization);
      expect(sent).toEqual([`Bearer ${key}`, `Bearer ${key}`]);
    },
  );

  it('prefers its options to ORG_API_KEY and ORG_API_BASE_URL, and reads both without options', async () => {
    const [server, other] = [await startFaultServer([{ status: 200, body: '{}' }]), await startFaultServer([])];
    const environment = { ORG_API_KEY: `aln_ca_${'x'.repeat(43)}`, ORG_API_BASE_URL: other.url };
    await (await open({ baseUrl: server.url, environment })).call('getOrg', orgId);
    expect([server.requests[0]?.headers.authorization, other.requests.length]).toEqual([`Bearer ${key}`, 0]);
    const client = await open({ key: undefined, maxRetries: 0, environment });
    await client.call('getOrg', orgId);
    expect(other.requests[0]?.headers.authorization).toBe(`Bearer ${environment.ORG_API_KEY}`);
    expect(await client.print()).not.toContain(environment.ORG_API_KEY);
  });

  it.each(['sk_live_51H', 'aln_eu_xxxxxxxxxxxx', 'aln_us_with space', 'aln_us_with\u0000zero', 'aln_us_ü'])(
    'rejects the key %j without quoting it',
    async (given) => {
      const isVariable = !given.includes('\u0000'); // which the system rejects in a variable
      for (const settings of [{ key: given }, ...(isVariable ? [{ environment: { ORG_API_KEY: given } }] : [])]) {
        const error = await create(settings);
        expect(error).toMatch(/is not an API key: keys begin with aln_us_ or aln_ca_/);
        expect(error).not.toContain(given.slice(7));
      }
    },
  );

  it.each(['', ' \n', '""'])('says how to pass a key instead of %j', async (given) => {
    for (const settings of [{ key: given }, { environment: { ORG_API_KEY: given } }, {}])
      expect(await create(settings)).toMatch(/There is no API key: pass .*key.* or set ORG_API_KEY/);
  });

  it.each([
    'http://us.example',
    'http://127.0.0.1.example',
    'ftp://127.0.0.1',
    'https://user:x@us.example',
    'https://us.example/?a',
    'https://us.example/#a',
  ])('rejects the base URL %s', async (baseUrl) => {
    expect(await create({ key, baseUrl })).toMatch(/The base URL must (begin with https:\/\/|have a host and a path)/);
  });
});
