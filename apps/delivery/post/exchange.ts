import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { createStatusLineReader } from './status-line.ts';

/** `status` is null without a status line; `error` is null after a close or an abort. */
export interface Exchange {
  status: number | null;
  /** The header as sent; null when there is none, or when the headers did not end. */
  retryAfter: string | null;
  answer: Buffer;
  /** `Content-Encoding` of the answer as sent; null without one. */
  answerEncoding: string | null;
  error: Error | null;
}

/** The status line is the outcome. What follows is for the log, and must not hold a slot. */
const restMs = 1_000;

/**
 * Posts a body over a new connection and reads the answer until it ends, `keepBytes` of it are
 * kept, a second has passed since the status line, or `signal` aborts. The connection is then
 * closed.
 *
 * - It uses node:http and not undici: undici 8.12 destroys the connection when a receiver sends
 *   `100 Continue` (which RFC 9110 permits), and reports no status before the last header.
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
    let rest: NodeJS.Timeout | undefined;
    const end = () => void socket.destroy();
    const readStatus = (bytes: Buffer) => {
      statusLine.read(bytes);
      if (statusLine.status !== null) rest ??= setTimeout(end, restMs);
    };
    const fail = (cause: Error) => {
      error ??= cause;
      end();
    };

    const finish = () => {
      signal.removeEventListener('abort', end);
      clearTimeout(rest);
      const status = statusLine.status ?? response?.statusCode ?? null;
      const retryAfter = response?.headers['retry-after'] ?? null;
      const answerEncoding = response?.headers['content-encoding'] ?? null;
      resolve({ status, retryAfter, answer: Buffer.concat(kept), answerEncoding, error });
    };
    if (socket.closed) return finish(); // 'close' is not emitted again
    socket.once('close', finish);
    socket.on('error', fail);
    signal.addEventListener('abort', end, { once: true });

    const post = request({
      createConnection: () => socket,
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers: {
        ...headers,
        host: url.host,
        'content-length': String(body.length),
        connection: 'close',
      },
      insecureHTTPParser: false,
    });
    post.on('error', fail);
    post.on('upgrade', end);
    // node:http has added its listener by now, so this one takes no bytes from it. Added in front,
    // it reads the bytes before a parser error destroys the socket.
    post.on('socket', () => {
      socket.once('data', onFirstByte);
      socket.prependListener('data', readStatus);
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
