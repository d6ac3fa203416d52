import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { createStatusLineReader } from './status-line.ts';

/**
 * The answer. `status` is null without a status line; `error` then says why, or is null after a
 * close or an abort.
 */
export interface Exchange {
  status: number | null;
  /** The header as sent; null when there is none, or when the headers did not end. */
  retryAfter: string | null;
  answer: Buffer;
  error: Error | null;
}

/**
 * Posts a body over an open connection and reads the answer until it ends, `keepBytes` of it are
 * kept, or `signal` aborts. Then destroys the connection.
 *
 * - It uses node:http and not undici: undici 8.12 destroys the connection when a receiver sends
 *   `100 Continue` (which RFC 9110 permits), and reports no status before the last header. With a
 *   socket from this module, nothing else of undici would be used.
 * - Each post has a connection of its own, with `Connection: close`. The receiver may close a kept
 *   connection during a post, which looks like a lost answer and repeats an event. A kept
 *   connection would also skip the check of addresses, and share its faults among organizations
 *   with the same host.
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
    if (socket.closed) return finish(); // 'close' is not emitted again
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
    // node:http has added its listener by now, so this one takes no bytes from it. Added in front,
    // it reads the bytes before a parser error destroys the socket.
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
