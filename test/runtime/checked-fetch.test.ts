import { createServer } from 'node:http';
import { BlockList } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createFetch } from '#runtime/egress/fetch.ts';
import type { Resolve } from '#runtime/egress/resolve.ts';
import { listenLocally } from '#test/listen-locally.ts';

const none = new BlockList();
const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8);
const resolveTo =
  (...addresses: string[]): Resolve =>
  async () => ({ ok: true, addresses });

/** A server, and how many requests it got. */
async function startServer(body: string, status = 200, headers: Record<string, string> = {}) {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    response.writeHead(status, headers).end(body);
  });
  const port = await listenLocally(server);
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${port}`, requests };
}

describe('a request to an address that an organization chose', () => {
  it.each([
    ['http://127.0.0.1/', 'url_scheme address_not_public'],
    ['https://127.0.0.1/', 'address_not_public'],
    ['https://[::1]/', 'address_not_public'],
    ['https://169.254.169.254/latest', 'address_not_public'],
    ['https://[::ffff:127.0.0.1]/', 'address_not_public'],
    ['https://2130706433/', 'address_not_public url_host_form'],
    ['https://localhost/', 'url_host_local'],
    ['https://rebind.example.com/', 'name_not_public'],
  ])('goes to no address inside the network: %s', async (url, causes) => {
    const fetch = createFetch({ allow: none, resolve: resolveTo('93.184.215.14', '10.0.0.1') });
    const error = await fetch(url, {}).catch((failure: Error) => failure);
    expect(error).toBeInstanceOf(Error);
    expect(causes.split(' ')).toContain((error as Error).message);
  });

  it('connects to the address that was checked, not to one that the name has later', async () => {
    const server = await startServer('{}');
    let looked = 0;
    const resolve: Resolve = async () => ({ ok: true, addresses: [looked++ === 0 ? '127.0.0.1' : '10.0.0.1'] });
    const fetch = createFetch({ allow: loopback, resolve });
    const response = await fetch(server.url.replace('127.0.0.1', 'provider.example.com'), {});
    expect([response.status, looked, server.requests.length]).toEqual([200, 1, 1]);
  });

  it('follows no redirect', async () => {
    const target = await startServer('secret');
    const server = await startServer('', 302, { location: target.url });
    const response = await createFetch({ allow: loopback, resolve: resolveTo() })(server.url, {});
    expect([response.status, target.requests]).toEqual([302, []]);
  });

  it('takes 256 KiB of a body, and no more', async () => {
    const fetch = createFetch({ allow: loopback, resolve: resolveTo() });
    const most = await startServer('x'.repeat(256 * 1024));
    expect((await (await fetch(most.url, {})).text()).length).toBe(256 * 1024);
    const more = await startServer('x'.repeat(256 * 1024 + 1));
    await expect(fetch(more.url, {})).rejects.toThrow('response_too_long');
  });
});
