import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartupError } from './errors.ts';
import { once } from './flow/once.ts';
import { createFaultyRequest, findRequestFault, type RequestFault, useTargetPath } from './request-faults.ts';
import {
  type Cut,
  type GuardOptions,
  guardResponses,
  isKnownUnused,
  isUnused,
  TrackedResponse,
} from './tracked-response.ts';

/** A server could not listen. The message says what the operator must change. */
export class ListenError extends StartupError {}

/**
 * Headers of every response, also to malformed HTTP. Browsers use https for two years (RFC 6797;
 * ignored over http), and never guess a type.
 */
export const securityHeaders = {
  'Strict-Transport-Security': 'max-age=63072000; includeSubDomains',
  'X-Content-Type-Options': 'nosniff',
} as const satisfies Readonly<Record<string, string>>;

/** A listening HTTP server and its address. */
export interface RunningServer {
  url: string;
  countConnections(): Promise<number>;
  stop(): Promise<void>;
}

export interface ServerOptions {
  handler: RequestListener;
  host: string;
  port: number;
  /** How long an idle connection is kept; default `defaultKeepAliveSeconds`. */
  keepAliveSeconds?: number;
  /** How long responses carry `Connection: close` before the server closes; see `stop`. */
  drainDelayMs?: number;
  /** Called when `stop` is, before anything closes. */
  onDraining?: () => void;
  /** How long requests in progress may take after that. */
  deadlineMs?: number;
  /** Headers of every response, also to a request with a fault. */
  headers?: Readonly<Record<string, string>>;
  /**
   * Whether `handler` gets requests with a fault too (see `findRequestFault`), to answer them in
   * its own form; otherwise the server answers them.
   */
  handlesFaults?: boolean;
  /** Bounds for clients; without them nothing is cut (metrics, development). */
  bounds?: ServerBounds;
}

/** What the clients of a server may use. */
export interface ServerBounds
  extends Pick<GuardOptions, 'minBytesPerSecond' | 'slowAfterMs' | 'unknownKeepAliveSeconds' | 'isTrusted'> {
  /** How long the headers of a request may take to arrive; default 15 s. */
  headersTimeoutMs?: number;
  maxConnections: number;
  /** `deadlineMs` of `GuardOptions`. */
  responseDeadlineMs: number;
  /** Called for each connection that was cut; `Cut` says why. */
  onCut: (cut: Cut) => void;
  /** Called for each connection that was closed at once because there were `maxConnections`. */
  onConnectionRefused: () => void;
}

/**
 * How long an idle connection is kept: longer than any gateway keeps one, so that none closes under
 * a request. Google's load balancers keep one for 600 s, Envoy for an hour, AWS's for 4,000 s at
 * most. An idle connection costs little, and closes when there are too many.
 */
export const defaultKeepAliveSeconds = 4_200;

/**
 * Starts an HTTP server; resolves when it listens. Keep-alive must be longer than a load
 * balancer's, so that the server never closes a connection while a request arrives (a 502 for
 * callers).
 *
 * `stop` loses no request. Every response has `Connection: close` for the drain delay, so that
 * clients close by themselves. Then the server closes, and waits for requests in progress until the
 * deadline. (Without the delay 5 requests of a loaded keep-alive client were reset; with 500 ms
 * none.)
 *
 * @throws ListenError when the address is in use or not available.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { handler, host, port, drainDelayMs = 0, onDraining = () => {}, deadlineMs = 20_000, headers = {} } = options;
  const { keepAliveSeconds = defaultKeepAliveSeconds } = options;
  const AppResponse = responseWith(headers);
  const server = createServer(
    {
      ...buildRequestBounds(options.bounds?.headersTimeoutMs),
      keepAliveTimeout: keepAliveSeconds * 1_000,
      ServerResponse: AppResponse,
    },
    // Requests that were received together start together, even if the first cut the connection.
    (request, response) => {
      if (request.socket.destroyed) return;
      useTargetPath(request);
      const fault = findRequestFault(request);
      if (fault === null) return handler(request, response);
      response.setHeader('Connection', 'close');
      if (options.handlesFaults) handler(request, response);
      else sendFault(response, fault);
    },
  );
  respondToEveryRequest(server, (request, socket) => {
    const response = new AppResponse(request);
    try {
      response.assignSocket(socket);
    } catch {
      return void socket.destroy(); // in the middle of a response it would become part of the body
    }
    response.setHeader('Connection', 'close');
    response.on('finish', () => socket.destroySoon());
    server.emit('request', request, response);
  });
  const stopGuarding = options.bounds === undefined ? () => {} : bound(server, options.bounds, keepAliveSeconds);
  await listen(server, host, port);
  const { address, family, port: boundPort } = server.address() as AddressInfo;
  const reachable =
    address === '0.0.0.0' || address === '::' ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address;

  async function close(): Promise<void> {
    onDraining();
    await sleep(drainDelayMs);
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

/**
 * Returns how long a request may take to arrive: its headers, and twice as long for all of it. Node
 * answers later ones with 408, within a third of that.
 */
const buildRequestBounds = (headersTimeout = 15_000) => ({
  headersTimeout,
  requestTimeout: 2 * headersTimeout,
  connectionsCheckingInterval: headersTimeout / 3,
  maxHeaderSize: 16_384,
  requireHostHeader: false, // `findRequestFault` does
});

/**
 * Has a server's handler answer what Node answers or drops by itself: an unknown expectation,
 * CONNECT, and what its parser rejects.
 *
 * @param respond - answers a request on a connection that Node has let go of.
 */
function respondToEveryRequest(server: Server, respond: (request: IncomingMessage, socket: Socket) => void): void {
  server.maxHeadersCount = 0; // their size is bounded; Node would ignore those behind the 1,000th
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('connect', (request, duplex) => {
    const socket = duplex as Socket;
    socket.on('error', () => socket.destroy()).resume();
    request.url = '/'; // the target of CONNECT is no path
    respond(request, socket);
  });
  const given = new WeakSet<Socket>();
  server.on('clientError', (error: NodeJS.ErrnoException, duplex) => {
    const socket = duplex as Socket;
    if (given.has(socket)) return; // more of what is being answered
    // Node counts the time for a request from the connection's start; the guard ends this one.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && isKnownUnused(socket)) return;
    // A client without a request would take an error for its next one's response.
    const canRespond = socket.writable && !isUnused(socket);
    if (error.code === 'ECONNRESET' || !canRespond) return void socket.destroy();
    given.add(socket);
    respond(createFaultyRequest(socket, error.code), socket);
  });
}

/** How often idle connections are closed for new ones when there are too many (ms). */
const idleClosedEveryMs = 1_000;

/** Applies a server's bounds. Returns a function that stops the guard. */
function bound(server: Server, bounds: ServerBounds, keepAliveSeconds: number): () => void {
  const {
    maxConnections,
    headersTimeoutMs: _,
    responseDeadlineMs: deadlineMs,
    onConnectionRefused,
    ...guardOptions
  } = bounds;
  let idleClosedAtMs = Number.NEGATIVE_INFINITY;
  server.maxConnections = maxConnections;
  server.on('drop', () => {
    onConnectionRefused();
    if (performance.now() - idleClosedAtMs < idleClosedEveryMs) return;
    idleClosedAtMs = performance.now();
    server.closeIdleConnections();
  });
  return guardResponses(server, { ...guardOptions, keepAliveSeconds, deadlineMs });
}

/** Returns the class of a server's responses, which begin with these headers. */
function responseWith(headers: Readonly<Record<string, string>>): typeof TrackedResponse {
  const entries = Object.entries(headers);
  return class<Request extends IncomingMessage> extends TrackedResponse<Request> {
    constructor(request: Request) {
      super(request);
      for (const [name, value] of entries) this.setHeader(name, value);
    }
  };
}

/** Answers a request with a fault for a handler that does not. */
function sendFault(response: ServerResponse, { status, message }: RequestFault): void {
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify({ error: 'invalid_request', message }));
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      // A kernel without IPv6 has every address of IPv4 only.
      if (error.code === 'EAFNOSUPPORT' && host === '::') return resolve(listen(server, '0.0.0.0', port));
      const why =
        error.code === 'EADDRINUSE' ? 'another process listens there' : `the system says ${error.code ?? 'no'}`;
      reject(new ListenError(`cannot listen on ${host} port ${port}: ${why}; set another port or end that process`));
    });
    server.listen(port, host, 2048, () => resolve());
  });
}
