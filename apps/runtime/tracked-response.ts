import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * A response whose end is always known: it was sent, its client disconnected, or it was cut. Node
 * emits `close` only for the response that a closing socket is sending, so the guard ends those
 * behind it.
 */
export class TrackedResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** The connection on which it is sent; set by the guard. */
  guarded: Connection | null = null;
  #callbacks: (() => void)[] | null = null;
  #hasEnded = false;

  /** Whether the client reads no more of it. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Calls `callback` once, when the response ends; at once if it has ended. */
  onEnd(callback: () => void): void {
    if (this.#hasEnded) callback();
    else if (this.#callbacks === null) this.#callbacks = [callback];
    else this.#callbacks.push(callback);
  }

  /** Keeps the connection, when idle, as long as the server keeps any: its client has sent a known key. */
  keepConnection(): void {
    if (this.guarded === null || this.guarded.isKnown) return;
    this.guarded.isKnown = true;
    this.removeHeader('Keep-Alive');
  }

  /** Ends it for its listeners; called by the guard. Can be called twice. */
  markEnded(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.guarded?.remove(this as unknown as TrackedResponse);
    const callbacks = this.#callbacks;
    this.#callbacks = null;
    for (const callback of callbacks ?? []) callback();
  }
}

/**
 * Why a connection was cut: below the minimum throughput, past the deadline, or too many requests
 * before their responses were read.
 */
type CutReason = 'slow' | 'deadline' | 'pipelined';

/** Requests of one connection that may be in progress: Node starts all that it receives at once. */
const maxPipelined = 16;

/** A cut connection, for logs and metrics. */
export interface Cut {
  reason: CutReason;
  /** Of the response that was being sent. */
  requestId: string | null;
  /** From the request's arrival to the cut. */
  durationMs: number;
  /** Bytes that were written to the socket and that the client had not read. */
  pendingBytes: number;
}

export interface GuardOptions {
  /** The least bytes per second that a client reads over `slowAfterMs` while bytes wait for it. */
  minBytesPerSecond: number;
  /** Default 10 s. */
  slowAfterMs?: number;
  /** To a response's last byte, from its request's arrival or the end of the response before it. */
  deadlineMs: number;
  /** Seconds that an idle connection is kept, also one that no request was sent on. */
  keepAliveSeconds: number;
  /**
   * The same for an unknown client (no `keepConnection`, no trusted proxy), whose connection may
   * hold a response that it never reads; null: as long as any other.
   */
  unknownKeepAliveSeconds?: number | null;
  /** Returns whether the server's operator trusts connections from this address. */
  isTrusted?: (address: string | undefined) => boolean;
  onCut: (cut: Cut) => void;
}

interface Mark {
  sentBytes: number;
  atMs: number;
  pendingBytes: number;
}

/**
 * A connection and its responses in progress, in the order of their requests. One set for the whole
 * server took a tenth of the process's time.
 */
class Connection {
  readonly socket: Socket;
  readonly responses: TrackedResponse[] = [];
  /** When the first of them began: with its request, or when the response before it ended. */
  firstSinceMs = 0;
  readonly openedAtMs = performance.now();
  /** When the last of them ended; null while there are some, and before the first. */
  endedAtMs: number | null = null;
  mark: Mark | null = null;
  /** The newest one. */
  request: IncomingMessage | null = null;
  isKnown: boolean;

  constructor(socket: Socket, isKnown: boolean) {
    this.socket = socket;
    this.isKnown = isKnown;
  }

  add(response: TrackedResponse): void {
    if (this.responses.length === 0) this.firstSinceMs = performance.now();
    this.endedAtMs = null;
    this.responses.push(response);
    response.guarded = this;
  }

  /** Null while a request is answered, and while the first one arrives. */
  get idleSinceMs(): number | null {
    return isUnused(this.socket) ? this.openedAtMs : this.endedAtMs;
  }

  remove(response: TrackedResponse): void {
    const index = this.responses.indexOf(response);
    if (index === 0) this.responses.shift();
    else if (index > 0) this.responses.splice(index, 1);
    if (index === 0 && this.responses.length > 0) this.firstSinceMs = performance.now();
    if (this.responses.length === 0) this.endedAtMs = performance.now();
  }
}

/** Returns whether a client has sent nothing: proxies open connections that they need later. */
export const isUnused = (socket: Socket): boolean => socket.bytesRead === 0;

const keepAliveGraceMs = 1_000;
/** How long a client may be slower than the minimum throughput. */
const standardSlowAfterMs = 10_000;
const sweepEveryMs = 1_000;

/** The property of a socket that holds its connection. */
const connectionProperty = Symbol('connection');
type TrackedSocket = Socket & { [connectionProperty]?: Connection };

/** Returns whether a connection of a known client waits for its first request. */
export const isKnownUnused = (socket: TrackedSocket): boolean =>
  isUnused(socket) && socket[connectionProperty]?.isKnown === true;

/**
 * Cuts connections whose clients do not read. A sweep at an interval checks all responses, so that
 * a request needs no timer. Returns a function that stops it.
 *
 * Node counts a write as read when the system has taken all of it. A body that is written in one
 * piece therefore gets the time that the minimum throughput allows for all of it. Large bodies are
 * written in chunks, and each is checked.
 */
export function guardResponses(server: Server, options: GuardOptions): () => void {
  const { minBytesPerSecond, slowAfterMs = standardSlowAfterMs, deadlineMs, onCut } = options;
  const { keepAliveSeconds, unknownKeepAliveSeconds = null, isTrusted = () => false } = options;
  const connections = new Set<Connection>();

  function cut({ socket, responses: [response], firstSinceMs }: Connection, reason: CutReason): void {
    const id = response?.getHeader('Request-Id');
    const requestId = typeof id === 'string' ? id : null;
    const durationMs = Math.round(performance.now() - firstSinceMs);
    onCut({ reason, requestId, durationMs, pendingBytes: socket.writableLength });
    // A reset frees what the system holds for the client, which a close keeps for minutes.
    socket.resetAndDestroy();
  }

  /** Returns whether the client has been too slow since the last mark for long enough. */
  function isSlow(connection: Connection, nowMs: number): boolean {
    const { socket, mark } = connection;
    const pendingBytes = socket.writableLength;
    if (pendingBytes === 0) {
      connection.mark = null;
      return false;
    }
    const sentBytes = socket.bytesWritten - pendingBytes;
    const elapsedMs = mark === null ? 0 : nowMs - mark.atMs;
    const enoughBytes = (minBytesPerSecond * elapsedMs) / 1_000;
    if (mark === null || (elapsedMs >= slowAfterMs && sentBytes - mark.sentBytes >= enoughBytes)) {
      connection.mark = { sentBytes, atMs: nowMs, pendingBytes };
      return false;
    }
    return elapsedMs >= slowAfterMs && enoughBytes >= mark.pendingBytes;
  }

  /**
   * The connection is kept a little longer than its responses state, or than a response whose
   * request has not ended: reading such a body in chunks of one byte takes a core.
   */
  function isStale({ isKnown, idleSinceMs, request }: Connection, nowMs: number): boolean {
    if (idleSinceMs === null) return false;
    const seconds = isKnown ? keepAliveSeconds : (unknownKeepAliveSeconds ?? keepAliveSeconds);
    return nowMs - idleSinceMs > (request?.complete === false ? 0 : seconds * 1_000) + keepAliveGraceMs;
  }

  function sweep(): void {
    const nowMs = performance.now();
    for (const connection of connections) {
      if (connection.responses.length > 0 && nowMs - connection.firstSinceMs > deadlineMs) cut(connection, 'deadline');
      else if (isSlow(connection, nowMs)) cut(connection, 'slow');
      else if (isStale(connection, nowMs)) connection.socket.destroySoon();
    }
  }

  server.on('connection', (socket: TrackedSocket) => {
    const connection = new Connection(socket, isTrusted(socket.remoteAddress));
    socket[connectionProperty] = connection;
    connections.add(connection);
    socket.once('close', () => {
      connections.delete(connection);
      for (const response of [...connection.responses]) response.markEnded();
    });
  });
  server.prependListener('request', (request: IncomingMessage, response: TrackedResponse) => {
    const connection = (request.socket as TrackedSocket)[connectionProperty];
    if (connection === undefined) return;
    connection.add(response);
    connection.request = request;
    if (unknownKeepAliveSeconds !== null && !connection.isKnown && response.shouldKeepAlive)
      response.setHeader('Keep-Alive', `timeout=${unknownKeepAliveSeconds}`);
    response.on('close', response.markEnded);
    if (connection.responses.length > maxPipelined && !connection.socket.destroyed) cut(connection, 'pipelined');
  });
  const timer = setInterval(sweep, sweepEveryMs);
  timer.unref();
  return () => clearInterval(timer);
}
