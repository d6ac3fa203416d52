import type { Pool } from 'pg';
import { apiError } from '#domain/contract/errors.ts';
import { isStatementError } from '#domain/db/driver/errors.ts';
import { ClientGoneError } from '#runtime/flow/budget.ts';
import type { Tracing } from '#runtime/tracing.ts';
import type { TrackedResponse } from '#runtime/tracked-response.ts';
import type { Encoding } from './accept-encoding.ts';
import type { Endpoint } from './endpoints.ts';
import type { SharedBody } from './large-body.ts';
import { type AuthorizedRow, buildParameters, type KeyRow, type ReadParameters } from './reads/authorized.ts';

/** One read, as its statements need it. */
export interface ReadRequest extends ReadParameters {
  endpoint: Endpoint;
  response: TrackedResponse;
  /** Of a large body; null: none. */
  encoding: Encoding | null;
  /** When it stops waiting for memory and for the begin of its statement (ms, monotonic). */
  deadlineMs: number;
}

/**
 * What a read found. `key` is null when no key has the fingerprint; `content` is null unless the
 * key may read. Its body is text when small; null when no request needs it.
 */
export interface ReadResult {
  key: KeyRow | null;
  content: { etag: string; body: string | SharedBody | null } | null;
}

/** Returns what names a read's key in this process: its fingerprint under the oldest pepper. */
export const getFingerprint = ({ fingerprints }: ReadRequest): string => fingerprints.at(-1)?.toString('latin1') ?? '';

/** Returns how long a read may still wait. */
export const leftMs = ({ deadlineMs }: ReadRequest): number => Math.max(0, deadlineMs - performance.now());

/** The most reads of one statement, which bounds how long one of them waits for the others. */
const maxReads = 32;

/**
 * How many recent statements run before reads wait for one of them. A statement is recent for
 * `recentMs`, so that a slow one delays no other operation.
 */
const maxRecent = 2;
const recentMs = 10;

/** The most statements of one operation: a slow one leaves connections to the others. */
const maxOfOperation = 3;

/** What statements of reads need. */
export interface StatementOptions {
  pool: Pool;
  tracing: Tracing;
  onStatement?: (reads: number) => void;
}

/**
 * How much of what a rejected statement took is no wait of its reads (ms): what had waited for longer
 * before it is not repeated, so that no statement of a read begins later than this after its deadline.
 */
const repeatMs = 1_000;

interface QueuedRead {
  request: ReadRequest;
  /** Whether it runs again by itself, because a statement that it shared was rejected. */
  isUnshared: boolean;
  /** Ends the wait: its statement starts. */
  onStarted: () => void;
  resolve: (row: AuthorizedRow | null) => void;
  reject: (cause: unknown) => void;
}

/** The reads of one operation that wait, and how many of its statements run. */
class Queue {
  readonly endpoint: Endpoint;
  running = 0;
  /** With the timer of each one's deadline. */
  readonly #reads = new Map<QueuedRead, NodeJS.Timeout>();

  constructor(endpoint: Endpoint) {
    this.endpoint = endpoint;
  }

  get isEmpty(): boolean {
    return this.#reads.size === 0;
  }

  /** Adds a read, which is rejected at its deadline and when its client disconnects. */
  push(read: QueuedRead): void {
    const { request, reject } = read;
    const timer = setTimeout(() => {
      if (this.#remove(read)) reject(apiError('unavailable'));
    }, leftMs(request));
    this.#reads.set(read, timer);
    request.response.onEnd(() => {
      if (this.#remove(read)) reject(new ClientGoneError());
    });
  }

  /** Removes the reads of the next statement. */
  shift(): QueuedRead[] {
    const next: QueuedRead[] = [];
    for (const read of this.#reads.keys()) {
      if (next.length === maxReads || (read.isUnshared && next.length > 0)) break;
      next.push(read);
      if (read.isUnshared) break;
    }
    for (const read of next) this.#remove(read);
    return next;
  }

  #remove(read: QueuedRead): boolean {
    clearTimeout(this.#reads.get(read));
    return this.#reads.delete(read);
  }
}

/**
 * Runs the statements of small bodies. Waiting reads share one.
 *
 * A read waits for no later one: it waits while `maxRecent` recent statements run, and the next
 * statement answers all reads of its operation that have arrived. So each read's statement begins
 * after its request, and its decision and body come from that statement's snapshot. The wait ends at
 * the read's deadline and with its client, whatever runs before it. When a statement is rejected or
 * times out, each of its reads runs again by itself, so that one changes no other's response; their
 * deadline is then later by what the statement took, at most a second. When a connection breaks,
 * exactly the reads of its statement fail.
 */
export class SharedStatements {
  readonly #options: StatementOptions;
  readonly #queues = new Map<Endpoint, Queue>();
  /** Queues with reads, in the order in which their statements begin. */
  readonly #waiting = new Set<Queue>();
  #recent = 0;
  #isScheduled = false;

  constructor(options: StatementOptions) {
    this.#options = options;
  }

  /**
   * Runs a read in a statement with waiting ones. Null: no key has the fingerprint.
   *
   * @throws ApiError at its deadline, ClientGoneError when the client disconnected before its
   * statement began, or the error of the statement.
   */
  async read(request: ReadRequest): Promise<AuthorizedRow | null> {
    const wait = Promise.withResolvers<void>();
    const result = Promise.withResolvers<AuthorizedRow | null>();
    const reject = (cause: unknown) => {
      wait.reject(cause);
      result.reject(cause);
    };
    this.#enqueue({ request, isUnshared: false, onStarted: wait.resolve, resolve: result.resolve, reject });
    // A read that is dropped from its queue rejects both, and only the first is awaited.
    result.promise.catch(() => {});
    await wait.promise;
    return this.#options.tracing.span('statement', () => result.promise);
  }

  #enqueue(read: QueuedRead): void {
    const { endpoint } = read.request;
    let queue = this.#queues.get(endpoint);
    if (queue === undefined) {
      queue = new Queue(endpoint);
      this.#queues.set(endpoint, queue);
    }
    queue.push(read);
    this.#waiting.add(queue);
    this.#schedule();
  }

  /** Reads that become ready in one iteration of the event loop share a statement. */
  #schedule(): void {
    if (this.#isScheduled || this.#recent >= maxRecent || this.#waiting.size === 0) return;
    this.#isScheduled = true;
    process.nextTick(() => this.#runWaiting());
  }

  #runWaiting(): void {
    this.#isScheduled = false;
    while (this.#recent < maxRecent) {
      const queue = this.#waiting.values().find(({ running }) => running < maxOfOperation);
      if (queue === undefined) return;
      this.#waiting.delete(queue);
      const reads = queue.shift();
      if (!queue.isEmpty) this.#waiting.add(queue);
      if (reads.length > 0) void this.#runShared(queue, reads);
    }
  }

  async #runShared(queue: Queue, reads: QueuedRead[]): Promise<void> {
    const endRecent = this.#countRecent();
    const startedMs = performance.now();
    queue.running += 1;
    for (const { onStarted } of reads) onStarted();
    try {
      this.#options.onStatement?.(reads.length);
      const values = buildParameters(reads.map(({ request }) => request));
      const { rows } = await this.#options.pool.query<AuthorizedRow>({ ...queue.endpoint.statement, values });
      const found = new Array<AuthorizedRow | null>(reads.length).fill(null);
      for (const row of rows) found[row.index] = row;
      for (const [index, { resolve }] of reads.entries()) resolve(found[index] ?? null);
    } catch (cause) {
      const isRepeatable = reads.length > 1 && isStatementError(cause);
      const ranMs = performance.now() - startedMs;
      for (const { request, ...read } of reads) {
        const repeated = { ...request, deadlineMs: request.deadlineMs + Math.min(ranMs, repeatMs) };
        if (isRepeatable && leftMs(repeated) > 0) this.#enqueue({ ...read, isUnshared: true, request: repeated });
        else read.reject(cause);
      }
    }
    queue.running -= 1;
    endRecent();
    this.#schedule();
  }

  /** Counts a statement as recent until the returned function is called, `recentMs` at most. */
  #countRecent(): () => void {
    let isRecent = true;
    this.#recent += 1;
    const end = () => {
      if (!isRecent) return;
      isRecent = false;
      clearTimeout(timer);
      this.#recent -= 1;
      this.#schedule();
    };
    const timer = setTimeout(end, recentMs);
    return end;
  }
}
