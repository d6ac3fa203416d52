import { request } from 'node:http';
import type { Socket } from 'node:net';
import type { AllowList } from '#domain/webhooks/address/addresses.ts';
import { checkUrl } from '#domain/webhooks/address/url.ts';
import { findAddresses } from './addresses.ts';
import { openConnection, secureConnection } from './connect.ts';
import type { Resolve } from './resolve.ts';

/** The most bytes of a body that are read. */
const mostBytes = 256 * 1024;
/** The most bytes of a connection: with headers, certificates and tickets. */
const mostBytesOfConnection = 2 * mostBytes;

/** A request that was not answered. `cause` says why, as for a webhook's post; no URL and no address. */
export class UnreachableError extends Error {
  override name = 'UnreachableError';
}

/**
 * The part of the standard function that clients of OpenID providers use. `beforeSend` runs once the server is
 * connected, before the first byte of the request: if it rejects, nothing is sent.
 */
export type CheckedFetch = (
  url: string,
  options: {
    method?: string;
    headers?: Record<string, string>;
    body?: unknown;
    signal?: AbortSignal | undefined;
    beforeSend?: () => Promise<void>;
  },
) => Promise<Response>;

/**
 * Creates a `fetch` for URLs that an organization chose. It connects as webhooks are posted: to addresses that were
 * checked after DNS, over TLS 1.2 or newer, each time over a new connection. It follows no redirect, decompresses
 * nothing, and reads 256 KiB at most.
 *
 * @throws UnreachableError also when the signal aborts.
 */
export function createFetch({ allow, resolve }: { allow: AllowList; resolve: Resolve }): CheckedFetch {
  return async (url, options) => {
    const { signal = AbortSignal.timeout(5_000) } = options;
    const target = checkUrl(url, allow);
    if (!target.ok) throw new UnreachableError(target.cause);
    const found = await findAddresses(target, { allow, resolve, signal });
    if (!found.ok) throw new UnreachableError(found.cause);
    const opened = await openConnection({ ...found, port: target.port, signal, limit: mostBytesOfConnection });
    if (!opened.ok) throw new UnreachableError(opened.cause);
    const isPlain = target.url.protocol === 'http:';
    const ready = isPlain ? opened : await secureConnection({ ...target, socket: opened.socket, signal });
    if (!ready.ok) throw new UnreachableError(ready.cause);
    await options.beforeSend?.().catch((error: unknown) => {
      ready.socket.destroy();
      throw error;
    });
    return exchange(ready.socket, target.url, options, signal);
  };
}

/** Sends the request over an open socket, and resolves with the whole response. The socket is closed. */
function exchange(
  socket: Socket,
  url: URL,
  { method = 'GET', headers = {}, body }: Parameters<CheckedFetch>[1],
  signal: AbortSignal,
): Promise<Response> {
  return new Promise<Response>((resolve, reject) => {
    const fail = (cause: string) => {
      socket.destroy();
      reject(new UnreachableError(cause));
    };
    const abort = () => fail('response_timeout');
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    socket.on('error', () => fail('response_missing'));
    socket.once('close', () => fail('response_missing'));
    const sent = request({
      createConnection: () => socket,
      method,
      path: `${url.pathname}${url.search}`,
      headers: { ...headers, host: url.host, connection: 'close', 'accept-encoding': 'identity' },
    });
    sent.on('error', () => fail('response_not_http'));
    sent.on('response', (response) => {
      const parts: Buffer[] = [];
      let bytes = 0;
      response.on('data', (part: Buffer) => {
        bytes += part.length;
        if (bytes > mostBytes) return fail('response_too_long');
        parts.push(part);
      });
      response.on('end', () => {
        signal.removeEventListener('abort', abort);
        const { statusCode = 502 } = response;
        const hasBody = statusCode >= 200 && ![204, 205, 304].includes(statusCode);
        const pairs = Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
          values.map((value): [string, string] => [name, value]),
        );
        if (statusCode < 200 || statusCode > 599) return fail('response_not_http');
        resolve(new Response(hasBody ? Buffer.concat(parts) : null, { status: statusCode, headers: pairs }));
        socket.destroy();
      });
    });
    sent.end(body === undefined || body === null ? undefined : String(body));
  });
}
