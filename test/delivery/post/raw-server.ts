import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { onTestFinished } from 'vitest';
import { type Post, postOnce } from '#delivery/post/post.ts';
import type { PostResult } from '#delivery/post/result.ts';
import { addressBlocks } from '#runtime/settings/types.ts';

/**
 * A receiver of raw bytes: `onRequest` gets each connection once the head and body of a post have
 * arrived.
 */
export interface RawServer {
  port: number;
  /** The bytes that each connection sent. */
  requests: string[];
  connections: number;
}

type OnConnection = (socket: Socket) => void;

/**
 * Starts a receiver on loopback that answers a complete request; with `tls` over TLS. It closes
 * when the test ends.
 */
export function startRawServer(onRequest: OnConnection, tls?: TlsOptions): Promise<RawServer> {
  return startSocketServer(() => {}, tls, onRequest);
}

/** The same without waiting for a request: `onConnect` gets each connection at once. */
export async function startSocketServer(
  onConnect: OnConnection,
  tls?: TlsOptions,
  onRequest?: OnConnection,
): Promise<RawServer> {
  const sockets = new Set<Socket>();
  const state: RawServer = { port: 0, requests: [], connections: 0 };
  const accept = (socket: Socket) => {
    const index = state.connections++;
    socket.on('error', () => socket.destroy());
    let request = '';
    socket.on('data', (bytes: Buffer) => {
      const wasWhole = isWhole(request);
      request += bytes.toString('latin1');
      state.requests[index] = request;
      if (!wasWhole && isWhole(request)) onRequest?.(socket);
    });
    onConnect(socket);
  };
  const server: Server = tls === undefined ? createServer(accept) : createTlsServer(tls, accept);
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  state.port = (server.address() as AddressInfo).port;
  return state;
}

function isWhole(request: string): boolean {
  const [head, body] = request.split('\r\n\r\n', 2);
  const length = /^content-length: (\d+)/im.exec(head ?? '')?.[1];
  return body !== undefined && body.length >= Number(length ?? 0);
}

/** Calls `write` every `everyMs` until the connection is closed. */
export function keepOn(socket: Socket, everyMs: number, write: () => void): void {
  const timer = setInterval(() => (socket.destroyed ? clearInterval(timer) : write()), everyMs);
  socket.on('close', () => clearInterval(timer));
}

/**
 * Listens at addresses of loopback without accepting, until their queues are full: a connection to
 * one of them is neither opened nor rejected, as with a host that is down. Ends with the test.
 */
export async function startDeadHosts(addresses: readonly string[], port: number): Promise<void> {
  const worker = new Worker(
    `const { createServer } = require('node:net');
     const { parentPort, workerData: { addresses, port } } = require('node:worker_threads');
     Promise.all(addresses.map((host) => new Promise((listening) =>
       createServer().listen({ host, port, backlog: 1 }, listening)))).then(() => {
       parentPort.postMessage('listening');
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
     });`,
    { eval: true, workerData: { addresses, port } },
  );
  onTestFinished(async () => void (await worker.terminate()));
  await once(worker, 'message');
  // Linux queues one connection more than the backlog has.
  const queued = addresses.flatMap((host) => [connect(port, host), connect(port, host)]);
  onTestFinished(() => {
    for (const socket of queued) socket.on('error', () => {}).destroy();
  });
  await Promise.all(queued.map((socket) => once(socket, 'connect')));
}

/** A resolver that must not be called. */
const noLookUp = async () => {
  throw new Error('nothing may be looked up in this test');
};

/** Posts as `postUntilStatus` does, and waits for what is kept of the response. */
export async function post(url: string, options: Partial<Post> = {}): Promise<PostResult> {
  const result = await postUntilStatus(url, options);
  return { ...result, ...(await result.rest) };
}

/** Sends one attempt to loopback, which is allowed. A name needs a resolver from the test. */
export function postUntilStatus(url: string, options: Partial<Post> = {}): Promise<PostResult> {
  return postOnce({
    url,
    headers: { 'content-type': 'application/json', 'user-agent': 'test' },
    body: Buffer.from('{"id":"1"}'),
    allow: addressBlocks.parse('127.0.0.0/8'),
    resolve: noLookUp,
    nowMs: Date.now(),
    ...options,
  });
}
