import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { isTooLong } from '#runtime/egress/connect.ts';
import type { KeptBody } from './result.ts';
import { StatusLineError, StatusLineReader } from './status-line.ts';

/** `status` is null without a status line; `error` is null after a close or an abort. */
export interface Exchange extends KeptBody {
  status: number | null;
  /** The header as sent; null when there is none, or when the headers did not end. */
  retryAfter: string | null;
  error: Error | null;
  /** What is kept in the end, when the response still arrives. Never rejects. */
  rest: Promise<KeptBody> | null;
}

/** What follows the status line is only kept with the attempt, and must not take up a slot. */
const restMs = 1_000;
/** The statuses whose `Retry-After` counts: the head has to arrive, too. */
export const retryAfterStatuses: readonly (number | null)[] = [429, 503];

/**
 * Posts a body over a new connection. Resolves with the status line, and after a 429 or 503 with
 * the head, so that the outcome is known while the body still arrives. It reads the response until
 * it ends, `keepBytes` of it are kept, more than 128 KiB have arrived, a second has passed since the
 * status line, or `signal` aborts. The connection is then closed. Nothing is decompressed, so a
 * small response cannot become a large one.
 *
 * It uses node:http because undici 8.12 destroys the connection after `100 Continue`, which RFC
 * 9110 permits, and reports no status before the last header.
 */
export function exchange(options: {
  /** The TCP connection, and what is spoken to over it: itself, or TLS. */
  connection: Socket;
  socket: Socket;
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  keepBytes: number;
  signal: AbortSignal;
  onFirstByte: () => void;
}): Promise<Exchange> {
  const { connection, socket, url, headers, body, keepBytes, signal, onFirstByte } = options;
  return new Promise((resolve) => {
    const statusLine = new StatusLineReader();
    const kept: Buffer[] = [];
    const rest = Promise.withResolvers<KeptBody>();
    let bytesLeft = keepBytes;
    let response: IncomingMessage | null = null;
    let error: Error | null = null;
    let restTimer: NodeJS.Timeout | undefined;
    const end = () => void socket.destroy();

    const read = (): Omit<Exchange, 'rest'> => ({
      status: statusLine.status,
      retryAfter: response?.headers['retry-after'] ?? null,
      body: Buffer.concat(kept),
      encoding: namedEncoding(response?.headers['content-encoding'] ?? ''),
      error,
    });
    // Most responses are whole by then: they come in one piece.
    const resolveSoon = () => setImmediate(() => resolve({ ...read(), rest: socket.destroyed ? null : rest.promise }));
    const fail = (cause: Error) => {
      error ??= cause;
      end();
    };
    const readStatus = (bytes: Buffer) => {
      if (isTooLong(connection)) end();
      statusLine.read(bytes);
      if (statusLine.isRejected) fail(new StatusLineError());
      if (statusLine.status === null || restTimer !== undefined) return;
      restTimer = setTimeout(end, restMs);
      if (!retryAfterStatuses.includes(statusLine.status)) resolveSoon();
    };

    const finish = () => {
      signal.removeEventListener('abort', end);
      clearTimeout(restTimer);
      const whole = read();
      rest.resolve(whole);
      resolve({ ...whole, rest: null });
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
      socket.prependListener('data', readStatus);
    });
    post.on('response', (message) => {
      response = message;
      resolveSoon();
      message.on('error', fail);
      message.on('end', end);
      message.on('data', (chunk: Buffer) => {
        kept.push(chunk.length > bytesLeft ? Buffer.from(chunk.subarray(0, bytesLeft)) : chunk);
        bytesLeft -= Math.min(chunk.length, bytesLeft);
        if (bytesLeft === 0) end();
      });
    });
    if (signal.aborted || socket.destroyed) end();
    post.end(body);
  });
}

function namedEncoding(header: string): string | null {
  const named = header.trim().toLowerCase().slice(0, 100);
  return ['', 'identity'].includes(named) ? null : named;
}
