import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Why a server could not listen: a sentence with the remedy, for whoever starts it. */
export class ListenRefused extends Error {}

/** A listening HTTP server and the address it got. */
export interface RunningServer {
  url: string;
  stop(): Promise<void>;
}

export interface ServerOptions {
  handler: RequestListener;
  host: string;
  port: number;
  /** How long an idle connection is kept; `defaultKeepAliveSeconds` unless told. */
  keepAliveSeconds?: number;
  /** How long answers carry `Connection: close` before the server closes; see `stop`. */
  drainDelayMs?: number;
  /** Called as soon as `stop` is, before anything closes. */
  onDraining?: () => void;
  /** How long requests under way may take after that. */
  deadlineMs?: number;
}

/** Longer than Google's load balancers (600 s, fixed), nginx and AWS' (60 s) keep an idle connection to us. Envoy keeps one for an hour unless told. */
export const defaultKeepAliveSeconds = 620;

/**
 * Starts an HTTP server; resolves when it listens. Keep-alive must outlast the time for which a load balancer keeps an idle connection, so that
 * it is never this side that closes one under a request, which callers would see as a 502.
 *
 * `stop` loses no request: readiness goes off and every answer says `Connection: close` for the drain delay, so that clients leave
 * by themselves; only then does the server close, wait for what is under way, and give up at the deadline. (Closing at once reset 5 requests
 * of a loaded keep-alive client here; with 500 ms of that, none.)
 *
 * @throws ListenRefused when the address is taken or not ours.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { handler, host, port, drainDelayMs = 0, onDraining = () => {}, deadlineMs = 20_000 } = options;
  const keepAliveTimeout = (options.keepAliveSeconds ?? defaultKeepAliveSeconds) * 1_000;
  const server = createServer(
    { keepAliveTimeout, headersTimeout: 15_000, requestTimeout: 30_000, maxHeaderSize: 16_384 },
    handler,
  );
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    const body = JSON.stringify({ error: 'invalid_request', message: 'The request is not well-formed HTTP.' });
    const status = error.code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request';
    socket.end(
      `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  });
  await listen(server, host, port);
  const { address, family, port: boundPort } = server.address() as AddressInfo;
  const reachable =
    address === '0.0.0.0' || address === '::' ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address;

  let stopping: Promise<void> | undefined;
  async function close(): Promise<void> {
    onDraining();
    await new Promise((resolve) => setTimeout(resolve, drainDelayMs));
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    const giveUp = setTimeout(() => server.closeAllConnections(), deadlineMs);
    await closed;
    clearTimeout(giveUp);
  }
  return {
    url: `http://${reachable}:${boundPort}`,
    stop: () => {
      stopping ??= close();
      return stopping;
    },
  };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE' ? 'another process listens there' : `the system says ${error.code ?? 'no'}`;
      reject(new ListenRefused(`cannot listen on ${host} port ${port}: ${why}; set another port or end that process`));
    });
    server.listen(port, host, 2048, () => resolve());
  });
}
