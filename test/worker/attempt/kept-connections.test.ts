import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { addressBlocks } from '#runtime/settings/types.ts';
import { createKeptConnections } from '../../../apps/worker/attempt/kept-connections.ts';
import { makeCertificate } from './certificates.ts';
import { post, type RawServer, startRawServer } from './raw-server.ts';

const authority = makeCertificate({ subject: 'Test Authority', isAuthority: true });
const { cert, key } = makeCertificate({ subject: 'receiver', names: ['hooks.example.com'], issuer: authority });
const thanks: RequestListener = (_request, response) => void response.end('thanks');
const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
const delivered = { kind: 'delivered', status: 200, isInternalError: false };

/** A receiver that keeps connections open for a minute, and its connections in order. */
async function startReceiver(onRequest: RequestListener = thanks, isTls = false) {
  const server: Server = isTls ? createTlsServer({ cert, key }, onRequest) : createServer(onRequest);
  server.keepAliveTimeout = 60_000;
  const sockets: Socket[] = [];
  server.on('connection', (socket) => sockets.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { sockets, port: (server.address() as AddressInfo).port };
}

/** The kept connections of a worker, which close when the test ends. */
function keepConnections(options?: Parameters<typeof createKeptConnections>[0]) {
  const connections = createKeptConnections(options);
  onTestFinished(() => connections.close());
  return connections;
}

/** A receiver that answers the first post of each connection, and handles the next as given. */
function startChangingServer(onNext: (socket: Socket) => void): Promise<RawServer> {
  let connections = 0;
  return startRawServer((socket) => {
    connections += 1;
    if (connections === 1) socket.on('data', () => onNext(socket));
    socket.write(answer);
  });
}

describe('a connection to a receiver', () => {
  it('is used for the next post of the webhook, without DNS and handshakes', async () => {
    const { sockets, port } = await startReceiver(thanks, true);
    const connections = keepConnections().of('a');
    let lookUps = 0;
    const resolve = async () => {
      lookUps += 1;
      return { ok: true as const, addresses: ['127.0.0.1'] };
    };
    const send = () => post(`https://hooks.example.com:${port}/`, { connections, resolve, ca: authority.cert });
    expect((await send()).timingsMs).toMatchObject({ dns: expect.any(Number), tls: expect.any(Number) });
    const second = await send();
    expect(second).toMatchObject({ ...delivered, peerAddress: '127.0.0.1' });
    expect(second.timingsMs).toMatchObject({ dns: null, connect: null, tls: null, firstByte: expect.any(Number) });
    expect(second.answer.toString()).toBe('thanks');
    expect([sockets.length, lookUps]).toEqual([1, 1]);
  });

  it('carries a hundred posts, each with its own answer, and leaves no listeners behind', async () => {
    const { sockets, port } = await startReceiver((request, response) => {
      response.statusCode = Number(request.url?.slice(1));
      response.end(request.url);
    });
    const connections = keepConnections().of('a');
    const counts: number[] = [];
    for (let nth = 0; nth < 100; nth += 1) {
      const status = 200 + nth;
      const outcome = await post(`http://127.0.0.1:${port}/${status}`, { connections });
      expect(outcome).toMatchObject({ status });
      if (outcome.keptBytes > 0) expect(outcome.answer.toString()).toBe(`/${status}`);
      const open = connections.take(`http://127.0.0.1:${port}`);
      if (open === null) throw new Error('no connection was kept');
      counts.push(open.socket.eventNames().reduce((sum, name) => sum + open.socket.listenerCount(name), 0));
      connections.keep(`http://127.0.0.1:${port}`, open);
    }
    expect(sockets.length).toBe(1);
    expect(counts.at(-1)).toBe(counts[1]);
  });

  it('is not shared by webhooks, nor by hosts, ports and schemes', async () => {
    const { sockets, port } = await startReceiver();
    const kept = keepConnections();
    const resolve = async () => ({ ok: true as const, addresses: ['127.0.0.1'] });
    await post(`http://127.0.0.1:${port}/`, { connections: kept.of('a') });
    await post(`http://127.0.0.1:${port}/`, { connections: kept.of('b') });
    await post(`http://receiver.example.com:${port}/`, { connections: kept.of('a'), resolve });
    expect(sockets.length).toBe(3);
    expect(await post(`https://127.0.0.1:${port}/`, { connections: kept.of('a') })).toMatchObject({ kind: 'failed' });
  });

  it('is not used when its address is no longer allowed', async () => {
    const { sockets, port } = await startReceiver();
    const connections = keepConnections().of('a');
    const resolve = async () => ({ ok: true as const, addresses: ['127.0.0.1'] });
    const url = `http://receiver.example.com:${port}/`;
    expect(await post(url, { connections, resolve })).toMatchObject(delivered);
    expect(await post(url, { connections, resolve, allow: addressBlocks.parse('10.0.0.0/8') })).toMatchObject({
      kind: 'refused',
      cause: 'name_not_public',
    });
    await expect.poll(() => sockets[0]?.destroyed).toBe(true);
  });

  it('is opened to an address that is looked up and judged again', async () => {
    const { sockets, port } = await startReceiver();
    const connections = keepConnections().of('a');
    const url = `http://receiver.example.com:${port}/`;
    expect(
      await post(url, { connections, resolve: async () => ({ ok: true, addresses: ['127.0.0.1'] }) }),
    ).toMatchObject(delivered);
    sockets[0]?.resetAndDestroy();
    expect(
      await post(url, { connections, resolve: async () => ({ ok: true, addresses: ['10.0.0.1'] }) }),
    ).toMatchObject({ kind: 'refused', cause: 'name_not_public' });
    expect(sockets.length).toBe(1);
  });

  it.each<[string, (socket: Socket) => void]>([
    ['closed', (socket) => socket.end()],
    ['reset', (socket) => socket.resetAndDestroy()],
  ])('that the receiver has %s costs no attempt: the post is made over a new one', async (_how, close) => {
    const { sockets, port } = await startReceiver();
    const connections = keepConnections().of('a');
    const url = `http://127.0.0.1:${port}/`;
    expect(await post(url, { connections })).toMatchObject(delivered);
    for (const socket of sockets) close(socket);
    // The close has arrived, and this process has not read it yet.
    const second = await post(url, { connections });
    expect(second).toMatchObject(delivered);
    expect(second.timingsMs.connect).toEqual(expect.any(Number));
    expect(sockets.length).toBe(2);
  });

  // Regression: a post that a receiver had read was repeated under the same number.
  it.each<[string, string, (socket: Socket) => void]>([
    ['closes without an answer', 'answer_missing', (socket) => socket.end()],
    ['resets', 'answer_missing', (socket) => socket.resetAndDestroy()],
    ['breaks off its answer', 'answer_missing', (socket) => socket.end('HTTP/1.1 20')],
    ['answers with something else', 'answer_not_http', (socket) => socket.end('SSH-2.0\r\n')],
    ['does not answer in time', 'answer_timeout', () => {}],
  ])('on which the receiver %s after a post is no reason to post twice', async (_what, cause, onNext) => {
    const server = await startChangingServer(onNext);
    const connections = keepConnections().of('a');
    const url = `http://127.0.0.1:${server.port}/`;
    expect(await post(url, { connections })).toMatchObject(delivered);
    expect(await post(url, { connections, deadlineMs: 300 })).toMatchObject({ kind: 'failed', cause });
    expect(server.connections).toBe(1);
    expect(await post(url, { connections })).toMatchObject(delivered);
    expect(server.connections).toBe(2);
  });

  it('closes when bytes arrive between two posts, so that no answer belongs to another post', async () => {
    let last: Socket | null = null;
    const server = await startRawServer((socket) => {
      last = socket;
      socket.write(answer);
      setImmediate(() => socket.write('HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n'));
    });
    const connections = keepConnections().of('a');
    const url = `http://127.0.0.1:${server.port}/`;
    for (let nth = 1; nth <= 5; nth += 1) {
      expect(await post(url, { connections })).toMatchObject(delivered);
      await expect.poll(() => last?.destroyed).toBe(true);
      expect(server.connections).toBe(nth);
    }
  });

  it.each<[string, string]>([
    ['says that it closes', 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'],
    ['speaks HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n'],
    ['keeps idle connections for a second', 'HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 0\r\n\r\n'],
    ['answers more than is kept', `HTTP/1.1 200 OK\r\ncontent-length: 20000\r\n\r\n${'x'.repeat(20_000)}`],
    ['sends two answers', answer + answer],
  ])('is closed when the receiver %s', async (_what, sent) => {
    const server = await startRawServer((socket) => void socket.write(sent));
    const connections = keepConnections().of('a');
    const url = `http://127.0.0.1:${server.port}/`;
    expect(await post(url, { connections })).toMatchObject(delivered);
    expect(await post(url, { connections })).toMatchObject(delivered);
    expect(server.connections).toBe(2);
  });

  it('is closed after its idle time', async () => {
    const { sockets, port } = await startReceiver();
    const connections = keepConnections({ idleMs: 50 }).of('a');
    expect(await post(`http://127.0.0.1:${port}/`, { connections })).toMatchObject(delivered);
    await expect.poll(() => sockets[0]?.destroyed).toBe(true);
    expect(connections.take(`http://127.0.0.1:${port}`)).toBeNull();
  });

  it('is not used beyond its lifetime', async () => {
    const { sockets, port } = await startReceiver();
    const connections = keepConnections({ lifetimeMs: 0 }).of('a');
    for (let nth = 1; nth <= 2; nth += 1) {
      expect(await post(`http://127.0.0.1:${port}/`, { connections })).toMatchObject(delivered);
      expect(sockets.length).toBe(nth);
    }
  });

  it('is one of ten at most that a webhook keeps, and all close with the worker', async () => {
    const { sockets, port } = await startReceiver();
    const kept = keepConnections();
    const send = () => post(`http://127.0.0.1:${port}/`, { connections: kept.of('a') });
    await Promise.all(Array.from({ length: 15 }, send));
    const countOpen = () => sockets.filter((socket) => !socket.destroyed).length;
    expect(sockets.length).toBe(15);
    await expect.poll(countOpen).toBe(10);
    kept.close();
    await expect.poll(countOpen).toBe(0);
  });
});
