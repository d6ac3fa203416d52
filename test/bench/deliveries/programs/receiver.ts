/**
 * The receiver of all sides, in a separate process. It answers every post with 200 at once, or
 * after a number of milliseconds when its path is `/after/<ms>`. It never answers when the path
 * begins with `/hang`. Its parent sends messages over IPC: `posts` requests the posts since the
 * last request, `closeHanging` closes hanging connections. With its first argument, a JSON document of a
 * certificate and its key, it serves HTTPS.
 */
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { machineMs } from '../clock.ts';

/** A post: the event's id, and when its first bytes arrived ({@link machineMs}). */
export interface ReceivedPost {
  eventId: string;
  atMs: number;
}

export type ReceiverRequest = { want: 'posts' } | { want: 'closeHanging' };
export type ReceiverMessage = { port: number } | { posts: ReceivedPost[] } | { closed: number };

let posts: ReceivedPost[] = [];
const hanging = new Set<ServerResponse>();
const tell = (message: ReceiverMessage) => process.send?.(message);

// Headers arrive in one piece with the first byte, so a request is reported in the turn that read
// it.
const onRequest: RequestListener = (request, response) => {
  const atMs = machineMs();
  request.on('error', () => {});
  response.on('error', () => {});
  request.resume();
  if (request.url?.startsWith('/hang')) {
    hanging.add(response);
    response.on('close', () => hanging.delete(response));
    return;
  }
  posts.push({ eventId: String(request.headers['webhook-id']), atMs });
  const [, afterMs] = /^\/after\/(\d+)/.exec(request.url ?? '') ?? [];
  request.on('end', () => {
    if (afterMs === undefined) response.end('thanks');
    else setTimeout(() => response.end('thanks'), Number(afterMs));
  });
};
const tls = process.argv[2];
const server = tls === undefined ? createServer(onRequest) : createTlsServer(JSON.parse(tls), onRequest);
server.keepAliveTimeout = 60_000;

process.on('message', ({ want }: ReceiverRequest) => {
  if (want === 'posts') {
    tell({ posts });
    posts = [];
    return;
  }
  const closed = hanging.size;
  for (const response of hanging) response.destroy();
  tell({ closed });
});
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => tell({ port: (server.address() as AddressInfo).port }));
