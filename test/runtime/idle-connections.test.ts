/** How long a server keeps idle connections of unknown clients. */
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { type ServerBounds, startServer } from '#runtime/http-server.ts';
import type { TrackedResponse } from '#runtime/tracked-response.ts';

/** A server that rejects every path but `/known`, and functions that observe its connections. */
async function setupServer(bounds: Partial<ServerBounds> = {}) {
  const { url, stop, countConnections } = await startServer({
    handler: (request, response) => {
      if (request.url === '/known') (response as TrackedResponse).keepConnection();
      response.writeHead(request.url === '/known' ? 200 : 401).end('{}');
    },
    host: '127.0.0.1',
    port: 0,
    bounds: {
      maxConnections: 100,
      minBytesPerSecond: 1,
      responseDeadlineMs: 600_000,
      unknownKeepAliveSeconds: 1,
      onCut: () => {},
      onConnectionRefused: () => {},
      ...bounds,
    },
  });
  onTestFinished(stop);
  const open = (): Promise<Socket> => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    onTestFinished(() => void socket.destroy());
    return new Promise((resolve) => socket.once('connect', () => resolve(socket)));
  };
  return { countConnections, open };
}

/** Sends a request and returns the head of its response. */
async function ask(socket: Socket, path: string): Promise<string> {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const bytes = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
  return bytes.toString('latin1');
}

it('a connection with only rejected requests is closed when idle, also when its client reads nothing', async () => {
  const { open, countConnections } = await setupServer();
  for (let n = 0; n < 10; n += 1) (await open()).pause().write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await expect.poll(countConnections).toBe(10);
  await expect.poll(countConnections, { timeout: 20_000 }).toBe(0);
});

it('a connection of a known client outlives those of unknown ones, also when a rejection follows', async () => {
  const { open, countConnections } = await setupServer();
  const known = await open();
  expect(await ask(known, '/known')).toMatch(/keep-alive: timeout=4200\r\n/i);
  expect(await ask(known, '/')).toMatch(/keep-alive: timeout=4200\r\n/i);
  const unknown = await open();
  expect(await ask(unknown, '/')).toMatch(/keep-alive: timeout=1\r\n/i);
  await new Promise((resolve) => unknown.once('close', resolve));
  expect(await countConnections()).toBe(1);
  expect(await ask(known, '/known')).toContain('HTTP/1.1 200');
});

it('a trusted proxy keeps its idle connections, whatever the responses on them were', async () => {
  let isTrusted = true;
  const { open, countConnections } = await setupServer({ isTrusted: () => isTrusted });
  const proxied = await open();
  expect(await ask(proxied, '/')).toMatch(/keep-alive: timeout=4200\r\n/i);
  isTrusted = false;
  const unknown = await open();
  expect(await ask(unknown, '/')).toMatch(/keep-alive: timeout=1\r\n/i);
  await new Promise((resolve) => unknown.once('close', resolve));
  expect(await countConnections()).toBe(1);
});
