import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { allowSockets } from './socket-guard.ts';

/** A post to a test's receiver, with the body's bytes. */
export interface Received {
  headers: IncomingHttpHeaders;
  body: Buffer;
  path: string;
  atMs: number;
}

/** Starts a receiver for a test; `answer` returns each response (200 by default) or null for none. */
export async function startReceiver() {
  const received: Received[] = [];
  const receiver = {
    url: '',
    received,
    respond: (response: ServerResponse, _post: Received): void => {
      response.writeHead(200).end('thanks');
    },
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const post = {
        headers: request.headers,
        body: Buffer.concat(chunks),
        path: request.url ?? '',
        atMs: performance.now(),
      };
      received.push(post);
      receiver.respond(response, post);
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise((closed) => server.close(() => closed()));
  });
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  allowSockets('receivers', receiver.url);
  return receiver;
}
