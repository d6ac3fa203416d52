import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { createStatusLineReader } from './status-line.ts';

/**
 * What came back. `status` null: no status line; then `error` says why, or is null for a close or
 * an abort.
 */
export interface Exchange {
  status: number | null;
  /** The header as sent; null when there is none, or the headers never ended. */
  retryAfter: string | null;
  answer: Buffer;
  error: Error | null;
}

/**
 * Posts a body over an open connection and reads the answer until it ends, `keepBytes` of it are
 * kept, or `signal` aborts; then the connection is destroyed.
 *
 * Decisions (2026-11-20):
 * - node:http and not undici: undici 8.12 destroys the connection when a
 *   receiver sends `100 Continue` (RFC 9110 lets any server do so), and shows no status before the
 *   last header. With a socket of this module nothing else of it would be used.
 * - A connection of its own for each post, and `Connection: close`. A kept one may be closed by the
 *   receiver just as we post, which looks like a lost answer and repeats an event; it would skip
 *   the judgement of addresses; and organizations that share a receiver's host would share its
 *   faults.
 * - Nothing is decompressed and no `Accept-Encoding` is sent, so a small answer cannot become a
 *   large one.
 */
export function exchange(options: {
  socket: Socket;
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  keepBytes: number;
  signal: AbortSignal;
  onFirstByte: () => void;
}): Promise<Exchange> {
  const { socket, url, headers, body, keepBytes, signal, onFirstByte } = options;
  return new Promise((resolve) => {
    const statusLine = createStatusLineReader();
    const kept: Buffer[] = [];
    let room = keepBytes;
    let response: IncomingMessage | null = null;
    let error: Error | null = null;
    const end = () => socket.destroy();
    const fail = (cause: Error) => {
      error ??= cause;
      end();
    };

    const finish = () => {
      signal.removeEventListener('abort', end);
      const status = statusLine.status ?? response?.statusCode ?? null;
      const retryAfter = response?.headers['retry-after'] ?? null;
      resolve({ status, retryAfter, answer: Buffer.concat(kept), error });
    };
    if (socket.closed) return finish(); // 'close' will not come again
    socket.once('close', finish);
    socket.on('error', fail);
    signal.addEventListener('abort', end, { once: true });

    const post = request({
      createConnection: () => socket,
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers: { ...headers, host: url.host, 'content-length': String(body.length), connection: 'close' },
      insecureHTTPParser: false,
    });
    post.on('error', fail);
    post.on('upgrade', end);
    // By now node:http listens too, so ours takes nothing away; in front, it has seen the bytes
    // before a parser's error destroys the socket.
    post.on('socket', () => {
      socket.once('data', onFirstByte);
      socket.prependListener('data', statusLine.read);
    });
    post.on('response', (message) => {
      response = message;
      message.on('error', fail);
      message.on('end', end);
      message.on('data', (chunk: Buffer) => {
        kept.push(chunk.length > room ? Buffer.from(chunk.subarray(0, room)) : chunk);
        room -= Math.min(chunk.length, room);
        if (room === 0) end();
      });
    });
    if (signal.aborted || socket.destroyed) end();
    post.end(body);
  });
}
