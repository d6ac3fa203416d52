import { type IncomingMessage, request } from 'node:http';
import type { Connection } from './kept-connections.ts';
import { createStatusLineReader } from './status-line.ts';

/** `status` is null without a status line; `error` is null after a close or an abort. */
export interface Exchange {
  status: number | null;
  /** The header as sent; null when there is none, or when the headers did not end. */
  retryAfter: string | null;
  answer: Buffer;
  error: Error | null;
  /** Whether the connection is still open, for another post. */
  isOpen: boolean;
}

/**
 * Posts a body over an open connection and reads the answer until it ends, `keepBytes` of it are
 * kept, or `signal` aborts. The connection then stays open only if `isKept`, the answer is complete
 * and the receiver keeps it open too.
 *
 * - It uses node:http and not undici: undici 8.12 destroys the connection when a receiver sends
 *   `100 Continue` (which RFC 9110 permits), and reports no status before the last header.
 * - Nothing is decompressed and no `Accept-Encoding` is sent, so a small answer cannot become a
 *   large one.
 */
export function exchange(options: {
  connection: Connection;
  isKept: boolean;
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  keepBytes: number;
  signal: AbortSignal;
  onFirstByte: () => void;
}): Promise<Exchange> {
  const { connection, isKept, url, headers, body, keepBytes, signal, onFirstByte } = options;
  const { socket } = connection;
  return new Promise((resolve) => {
    const statusLine = createStatusLineReader();
    const kept: Buffer[] = [];
    let room = keepBytes;
    let response: IncomingMessage | null = null;
    let error: Error | null = null;
    const end = () => void socket.destroy();
    const fail = (cause: Error) => {
      error ??= cause;
      end();
    };

    const finish = () => {
      signal.removeEventListener('abort', end);
      connection.off('free', finishIfOpen);
      socket.off('close', finish).off('error', fail).off('data', statusLine.read).off('data', onFirstByte);
      const status = statusLine.status ?? response?.statusCode ?? null;
      const retryAfter = response?.headers['retry-after'] ?? null;
      resolve({ status, retryAfter, answer: Buffer.concat(kept), error, isOpen: !socket.destroyed });
    };
    const finishIfOpen = () => {
      if (!socket.destroyed) finish();
    };
    if (socket.closed) return finish(); // 'close' is not emitted again
    socket.once('close', finish);
    socket.on('error', fail);
    // After the agent's own listener, which has decided whether the connection stays open.
    connection.once('free', finishIfOpen);
    signal.addEventListener('abort', end, { once: true });

    const post = request({
      agent: connection,
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers: {
        ...headers,
        host: url.host,
        'content-length': String(body.length),
        connection: isKept ? 'keep-alive' : 'close',
      },
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
      // An answer that came before the whole request was written leaves the connection unusable.
      message.on('end', () => {
        if (!post.shouldKeepAlive || !post.writableFinished) end();
      });
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
