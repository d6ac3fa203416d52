import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import {
  type Cut,
  GuardedAnswer,
  type GuardOptions,
  guardAnswers,
  hasAnswers,
  isKnownUnused,
  isUnused,
} from './guarded-answer.ts';
import { once } from './once.ts';
import { StartRefused } from './start-refused.ts';

/** A server could not listen. The message says what the operator must change. */
export class ListenRefused extends StartRefused {}

/** A listening HTTP server and its address. */
export interface RunningServer {
  url: string;
  /** Returns the number of open connections. */
  countConnections(): Promise<number>;
  stop(): Promise<void>;
}

export interface ServerOptions {
  handler: RequestListener;
  host: string;
  port: number;
  /** How long an idle connection is kept; default `defaultKeepAliveSeconds`. */
  keepAliveSeconds?: number;
  /** How long answers carry `Connection: close` before the server closes; see `stop`. */
  drainDelayMs?: number;
  /** Called when `stop` is, before anything closes. */
  onDraining?: () => void;
  /** How long requests in progress may take after that. */
  deadlineMs?: number;
  /** Headers of every answer, including Node's own answers to malformed HTTP. */
  headers?: Readonly<Record<string, string>>;
  /** Bounds for clients; without them nothing is cut (metrics, development). */
  bounds?: ServerBounds;
}

/** What the clients of a server may use. */
export interface ServerBounds
  extends Pick<GuardOptions, 'minBytesPerSecond' | 'unknownKeepAliveSeconds' | 'isTrusted'> {
  maxConnections: number;
  /** From a request's arrival to its answer's last byte. */
  answerDeadlineMs: number;
  /** Called for each connection that was cut because its client did not read. */
  onCut: (cut: Cut) => void;
  /** Called for each connection that was refused because there were `maxConnections`. */
  onRefused: () => void;
}

/**
 * Longer than load balancers of Google (600 s, fixed), nginx and AWS (60 s) keep an idle
 * connection. Envoy keeps one for an hour by default.
 */
export const defaultKeepAliveSeconds = 620;

/**
 * Starts an HTTP server; resolves when it listens. Keep-alive must be longer than a load
 * balancer's, so that the server never closes a connection while a request arrives (a 502 for
 * callers).
 *
 * `stop` loses no request. Every answer has `Connection: close` for the drain delay, so that
 * clients close by themselves. Then the server closes, and waits for requests in progress until the
 * deadline. (Without the delay 5 requests of a loaded keep-alive client were reset; with 500 ms
 * none.)
 *
 * @throws ListenRefused when the address is in use or not available.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { handler, host, port, drainDelayMs = 0, onDraining = () => {}, deadlineMs = 20_000, headers = {} } = options;
  const { keepAliveSeconds = defaultKeepAliveSeconds } = options;
  const server = createServer(
    { ...requestBounds, keepAliveTimeout: keepAliveSeconds * 1_000, ServerResponse: answerWith(headers) },
    // Requests that were received together start together, even if the first cut the connection.
    (request, response) => {
      if (!request.socket.destroyed) handler(request, response);
    },
  );
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // Node counts the time for a request from the connection's start; the guard ends this one.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && isKnownUnused(socket)) return;
    // A client without a request would take an error for its next one's answer, and in the middle
    // of an answer it would become part of the body.
    const isAnswerable = socket.writable && !isUnused(socket) && !hasAnswers(socket);
    if (error.code === 'ECONNRESET' || !isAnswerable) socket.destroy();
    else socket.end(malformedAnswer(error.code, headers));
  });
  const stopGuarding = options.bounds === undefined ? () => {} : bound(server, options.bounds, keepAliveSeconds);
  await listen(server, host, port);
  const { address, family, port: boundPort } = server.address() as AddressInfo;
  const reachable =
    address === '0.0.0.0' || address === '::' ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address;

  async function close(): Promise<void> {
    onDraining();
    await new Promise((resolve) => setTimeout(resolve, drainDelayMs));
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    const giveUp = setTimeout(() => server.closeAllConnections(), deadlineMs);
    await closed;
    stopGuarding();
    clearTimeout(giveUp);
  }
  return {
    url: `http://${reachable}:${boundPort}`,
    countConnections: () =>
      new Promise((resolve, reject) => server.getConnections((error, open) => (error ? reject(error) : resolve(open)))),
    stop: once(close),
  };
}

/** How long a request may take to arrive. Node answers later ones with 408, within 5 s. */
const requestBounds = {
  headersTimeout: 15_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 16_384,
};

/** How often idle connections are closed for new ones when there are too many (ms). */
const idleClosedEveryMs = 1_000;

/** Applies a server's bounds. Returns a function that stops the guard. */
function bound(server: Server, bounds: ServerBounds, keepAliveSeconds: number): () => void {
  const { maxConnections, answerDeadlineMs: deadlineMs, onRefused, ...guardOptions } = bounds;
  let idleClosedAtMs = Number.NEGATIVE_INFINITY;
  server.maxConnections = maxConnections;
  server.on('drop', () => {
    onRefused();
    if (performance.now() - idleClosedAtMs < idleClosedEveryMs) return;
    idleClosedAtMs = performance.now();
    server.closeIdleConnections();
  });
  return guardAnswers(server, { ...guardOptions, keepAliveSeconds, deadlineMs });
}

/** Returns the class of a server's answers, which begin with these headers. */
function answerWith(headers: Readonly<Record<string, string>>): typeof GuardedAnswer {
  const entries = Object.entries(headers);
  return class<Request extends IncomingMessage> extends GuardedAnswer<Request> {
    constructor(request: Request) {
      super(request);
      for (const [name, value] of entries) this.setHeader(name, value);
    }
  };
}

/** Returns the whole answer to a request that is malformed or did not arrive in time. */
function malformedAnswer(code: string | undefined, headers: Readonly<Record<string, string>>): string {
  const [status, message] =
    code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'The request’s headers are too large.']
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'The request was not sent in time.']
        : ['400 Bad Request', 'The request is not well-formed HTTP.'];
  const body = JSON.stringify({ error: 'invalid_request', message });
  const own = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body), Connection: 'close' };
  const lines = Object.entries({ ...headers, ...own }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status}\r\n${lines.join('')}\r\n${body}`;
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
