import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * An answer whose end is known on every path: it left, its client went away, or it was cut.
 *
 * Node emits `close` for the answer that a socket is sending, but not for those that wait behind it when the socket
 * closes; the guard ends these.
 */
export class GuardedAnswer<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  readonly startedAtMs = performance.now();
  /** The answers under way that it is one of; the guard sets it. */
  underWay: Set<GuardedAnswer> | null = null;
  #callbacks: (() => void)[] | null = null;
  #hasEnded = false;

  /** Whether nobody will read more of it. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Calls back once, when the answer ends; at once if it has. */
  onEnd(callback: () => void): void {
    if (this.#hasEnded) callback();
    else if (this.#callbacks === null) this.#callbacks = [callback];
    else this.#callbacks.push(callback);
  }

  /** Ends it for those that wait; the guard calls it. Safe to call twice. */
  markEnded(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const socket: CountedSocket = this.req.socket;
    socket[underWayOf] = (socket[underWayOf] ?? 1) - 1;
    this.underWay?.delete(this as unknown as GuardedAnswer);
    const callbacks = this.#callbacks;
    this.#callbacks = null;
    for (const callback of callbacks ?? []) callback();
  }
}

/**
 * Why a connection was cut: its client took less than the minimum throughput, an answer was not taken by its deadline,
 * or too many requests came before their answers were taken.
 */
export type CutReason = 'slow' | 'deadline' | 'pipelined';

/**
 * Requests of one connection that may be under way: Node begins all that it receives at once. Browsers and client
 * libraries send one.
 */
const maxPipelined = 16;

/** How many answers a connection has under way. */
const underWayOf = Symbol('answers under way');
type CountedSocket = Socket & { [underWayOf]?: number };

/** A cut connection, as logs and metrics are told of it. */
export interface Cut {
  reason: CutReason;
  /** Of the answer that was being sent. */
  requestId: string | null;
  /** From the request's arrival to the cut. */
  durationMs: number;
  /** Bytes that the client had not taken of what was written to its socket. */
  pendingBytes: number;
}

export interface GuardOptions {
  /** Bytes per second that a client takes at least while bytes wait for it, over `slowAfterMs`. */
  minBytesPerSecond: number;
  /** From a request's arrival to its answer's last byte. */
  deadlineMs: number;
  /** How long a client may be slower than that. */
  slowAfterMs?: number;
  sweepEveryMs?: number;
  onCut: (cut: Cut) => void;
}

interface Mark {
  takenBytes: number;
  atMs: number;
  pendingBytes: number;
}

/**
 * Cuts connections whose clients do not read: a server's answers are looked through at an interval, so that a request
 * costs a set's entry and no timer.
 *
 * Node counts a write as taken when the system has taken all of it, so a body that is written in one piece is given the
 * time that the minimum throughput allows for the
 * whole piece. Large bodies are written in chunks, and judged by each.
 *
 * @returns what stops it.
 */
export function guardAnswers(server: Server, options: GuardOptions): () => void {
  const { minBytesPerSecond, deadlineMs, slowAfterMs = 10_000, sweepEveryMs = 1_000, onCut } = options;
  const underWay = new Set<GuardedAnswer>();
  const marks = new WeakMap<Socket, Mark>();

  function cut(answer: GuardedAnswer, reason: CutReason): void {
    const { socket } = answer.req;
    const id = answer.getHeader('Request-Id');
    const requestId = typeof id === 'string' ? id : null;
    const durationMs = Math.round(performance.now() - answer.startedAtMs);
    onCut({ reason, requestId, durationMs, pendingBytes: socket.writableLength });
    // A reset frees what the system still holds for the client; after a mere close it would be kept for minutes.
    socket.resetAndDestroy();
  }

  /** Whether the client has been slower than the minimum since the last mark for long enough. */
  function isSlow(socket: Socket, nowMs: number): boolean {
    const pendingBytes = socket.writableLength;
    if (pendingBytes === 0) {
      marks.delete(socket);
      return false;
    }
    const takenBytes = socket.bytesWritten - pendingBytes;
    const mark = marks.get(socket);
    const elapsedMs = mark === undefined ? 0 : nowMs - mark.atMs;
    const enoughBytes = (minBytesPerSecond * elapsedMs) / 1_000;
    if (mark === undefined || (elapsedMs >= slowAfterMs && takenBytes - mark.takenBytes >= enoughBytes)) {
      marks.set(socket, { takenBytes, atMs: nowMs, pendingBytes });
      return false;
    }
    return elapsedMs >= slowAfterMs && enoughBytes >= mark.pendingBytes;
  }

  function sweep(): void {
    const nowMs = performance.now();
    for (const answer of underWay) {
      const { socket } = answer.req;
      if (socket.destroyed) answer.markEnded();
      else if (nowMs - answer.startedAtMs > deadlineMs) cut(answer, 'deadline');
      // An answer without a socket waits behind the one that is being sent.
      else if (answer.socket !== null && isSlow(socket, nowMs)) cut(answer, 'slow');
    }
  }

  server.prependListener('request', (request, answer: GuardedAnswer) => {
    const socket: CountedSocket = request.socket;
    const count = (socket[underWayOf] ?? 0) + 1;
    socket[underWayOf] = count;
    underWay.add(answer);
    answer.underWay = underWay;
    answer.on('close', answer.markEnded);
    if (count > maxPipelined && !socket.destroyed) cut(answer, 'pipelined');
  });
  const timer = setInterval(sweep, sweepEveryMs);
  timer.unref();
  return () => clearInterval(timer);
}
