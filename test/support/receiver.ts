import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { listenLocally } from './listen-locally.ts';
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
  receiver.url = `http://127.0.0.1:${await listenLocally(server)}`;
  allowSockets('receivers', receiver.url);
  return receiver;
}
