import { apiError } from '#domain/contract/errors.ts';
import { BoundedMap } from '#runtime/flow/bounded-map.ts';
import { Budget, type BudgetOptions, ClientGoneError, type Ends, type Reservation } from '#runtime/flow/budget.ts';
import type { TrackedResponse } from '#runtime/tracked-response.ts';
import type { Encoding } from './accept-encoding.ts';
import { encodeChunks } from './encode.ts';
import { listEtags } from './etag.ts';
import { SharedBody } from './large-body.ts';
import { readInChunks } from './large-statement.ts';
import {
  getFingerprint,
  leftMs,
  type ReadRequest,
  type ReadResult,
  type StatementOptions,
} from './shared-statements.ts';

const mebibyte = 1_048_576;

/**
 * How many copies of a large body are in memory while it arrives: its bytes, and the text of its
 * chunks until it is collected.
 */
const copiesWhileMade = 2;
/** What a large body is expected to have at most: 5 MB for 20,000 grants. */
const usualBytes = 6 * mebibyte;
/** By how much a body may grow from one statement to the next. */
const growth = 1.125;
/** A longer body than usual takes two statements; one more allows for a list that grows meanwhile. */
const maxTries = 3;
/** Bodies longer than usual whose length is remembered, so that they take one statement later. */
const maxLonger = 1_000;

/**
 * Large bodies that are read and sent at once. The system takes up to 4 MB of each for a client
 * that does not read, which counts as memory of the pod. 20 parallel calls of a key never wait for
 * this.
 */
const readersAtOnce = { key: 24, organization: 48, process: 128 };

/**
 * The share of the database's connections for large bodies. A roster of 20,000 grants keeps a core
 * of PostgreSQL busy for 300 ms; three at once made other reads wait (p99 × 14).
 */
const connectionShare = 0.1;

/**
 * Large bodies that are encoded at once. Each keeps a thread of the pool busy for 50 to 90 ms (20,000
 * grants), and the pool has four, which also look up names and read files.
 */
const encodersAtOnce = { organization: 1, process: 2 };

type Level = 'key' | 'organization';

interface LargeBodyOptions extends StatementOptions {
  databasePoolMax: number;
  /** Called for each body that was encoded. */
  onEncoded?: ((encoding: Encoding) => void) | undefined;
  /** The bytes that may be reserved for large bodies. */
  memory: Readonly<Record<Level | 'process', number>>;
  /** How reads wait for a share of anything. */
  wait: Omit<BudgetOptions<Level>, 'limits'>;
}

/**
 * Requests of one key from one address for the same large body in the same encoding: one statement
 * reads it for all that joined before it started.
 */
class RequestGroup implements Ends {
  readonly name: string;
  /** `getFingerprint` of each of its requests. */
  readonly fingerprint: string;
  /** The first of the requests. */
  readonly request: ReadRequest;
  readonly #responses = new Set<TrackedResponse>();
  readonly #result = Promise.withResolvers<ReadResult>();
  isStarted = false;

  constructor(name: string, fingerprint: string, request: ReadRequest) {
    this.name = name;
    this.fingerprint = fingerprint;
    this.request = request;
  }

  get responses(): Iterable<TrackedResponse> {
    return this.#responses;
  }

  get hasEnded(): boolean {
    return [...this.#responses].every(({ hasEnded }) => hasEnded);
  }

  /** @throws ClientGoneError when the client disconnected before the statement started. */
  add(response: TrackedResponse): Promise<ReadResult> {
    this.#responses.add(response);
    return new Promise((resolve, reject) => {
      this.#result.promise.then(resolve, reject);
      response.onEnd(() => {
        if (!this.isStarted) reject(new ClientGoneError());
      });
    });
  }

  resolveWith(read: Promise<ReadResult>): void {
    read.then(this.#result.resolve, this.#result.reject);
  }

  /** Calls back when the last of the responses has ended, including those that are added later. */
  onEnd(callback: () => void): void {
    const next = [...this.#responses].find(({ hasEnded }) => !hasEnded);
    if (next === undefined) callback();
    else next.onEnd(() => this.onEnd(callback));
  }

  /** The ETags with which none of the responses needs a body; null: any. */
  get unchanged(): string[] | null {
    const named = [...this.#responses]
      .filter(({ hasEnded }) => !hasEnded)
      .map(({ req }) => listEtags(req.headers['if-none-match'] ?? ''))
      .filter((tags) => tags !== null);
    const [first] = named;
    return first?.filter((tag) => named.every((tags) => tags.includes(tag))) ?? null;
  }
}

/**
 * Reads large bodies in chunks, in statements of their own. Requests of a key for one body wait
 * once for memory and a connection, and one statement answers all of them: 20 parallel calls for a
 * roster of 20,000 grants take 2 statements. The memory is reserved before the statement, which
 * gets the amount as a bound. Each statement checks the key again and begins after its requests.
 */
export class LargeBodyReader {
  readonly #options: LargeBodyOptions;
  readonly #readers: Budget<Level>;
  readonly #memory: Budget<Level>;
  readonly #connections: Budget<'organization'>;
  readonly #encoders: Budget<'organization'>;
  readonly #usualBytes: number;
  /** Bytes of bodies that are longer than usual, by organization and operation. */
  readonly #longer = new BoundedMap<string, number>(maxLonger);
  /** Those whose statement has not started, by key, organization, address, operation and encoding. */
  readonly #waiting = new Map<string, RequestGroup>();

  constructor(options: LargeBodyOptions) {
    const { databasePoolMax, memory, wait } = options;
    this.#options = options;
    this.#readers = new Budget({ limits: readersAtOnce, ...wait });
    this.#memory = new Budget({ limits: memory, ...wait });
    const connections = Math.max(1, Math.floor(databasePoolMax * connectionShare));
    this.#connections = new Budget<'organization'>({ limits: { organization: 1, process: connections }, ...wait });
    this.#encoders = new Budget<'organization'>({ limits: encodersAtOnce, ...wait });
    this.#usualBytes = Math.min(usualBytes, Math.floor(memory.key / copiesWhileMade));
  }

  /** Returns the bytes that are reserved, and how many reads wait. */
  get state() {
    const budgets = [this.#readers, this.#memory, this.#connections, this.#encoders];
    return { bytes: this.#memory.state.reserved, waiting: budgets.reduce((sum, { state }) => sum + state.waiting, 0) };
  }

  /** @throws BudgetFullError or ApiError at the deadline, ClientGoneError, the error of a statement */
  async read(request: ReadRequest): Promise<ReadResult> {
    const { endpoint, organizationId: organization, response } = request;
    const fingerprint = getFingerprint(request);
    const reader = await this.#readers.reserve({ key: fingerprint, organization }, 1, response, leftMs(request));
    try {
      if (response.hasEnded) throw new ClientGoneError();
      const name = `${fingerprint} ${organization} ${request.address} ${endpoint.operationId} ${request.encoding}`;
      const waiting = this.#waiting.get(name);
      const group = waiting ?? new RequestGroup(name, fingerprint, request);
      const result = group.add(response);
      if (waiting === undefined) {
        this.#waiting.set(name, group);
        group.resolveWith(this.#readFor(group));
      }
      return await result;
    } finally {
      response.onEnd(() => reader.free());
    }
  }

  /** Reads for the requests that are added until the statement starts. */
  async #readFor(group: RequestGroup): Promise<ReadResult> {
    const { endpoint, organizationId } = group.request;
    const list = `${organizationId} ${endpoint.operationId}`;
    let maxBytes = Math.max(this.#usualBytes, Math.ceil((this.#longer.get(list) ?? 0) * growth));
    try {
      for (let tries = 0; tries < maxTries; tries += 1) {
        const read = await this.#tryFor(group, maxBytes);
        if (typeof read !== 'number') return read;
        this.#longer.set(list, read);
        maxBytes = Math.ceil(read * growth);
      }
      throw apiError('unavailable');
    } finally {
      this.#close(group);
    }
  }

  /** Waits for memory and a connection, and runs the statement. A number: the bytes of a longer body. */
  async #tryFor(group: RequestGroup, maxBytes: number): Promise<ReadResult | number> {
    const { fingerprint, request } = group;
    const { organizationId: organization } = request;
    const bytes = maxBytes * copiesWhileMade;
    const memory = await this.#memory.reserve({ key: fingerprint, organization }, bytes, group, leftMs(request));
    let isKept = false;
    try {
      const connection = await this.#connections.reserve({ organization }, 1, group, leftMs(request));
      const run = () => {
        if (group.hasEnded) throw new ClientGoneError();
        this.#close(group);
        const { pool, tracing, onStatement } = this.#options;
        onStatement?.(1);
        return tracing.span('statement', () => readInChunks(pool, request, group, maxBytes, group.unchanged));
      };
      const read = await Promise.try(run).finally(() => connection.free());
      if (read === null || read.row.bytes === null) return { key: read?.row ?? null, content: null };
      const { row, chunks } = read;
      if (row.etag === null) return read.row.bytes;
      if (chunks.length === 0) return { key: row, content: { etag: row.etag, body: null } };
      const encoded = await this.#encode(chunks, group, memory);
      isKept = true;
      return { key: row, content: { etag: row.etag, body: new SharedBody(encoded, group.responses, memory) } };
    } finally {
      if (!isKept) memory.free();
    }
  }

  /** Returns the chunks of the body in the group's encoding. Ends with the last of its clients. */
  async #encode(chunks: Buffer[], group: RequestGroup, memory: Reservation): Promise<Buffer[]> {
    const { encoding, organizationId: organization } = group.request;
    if (encoding === null) return chunks;
    memory.resize(chunks.reduce((sum, chunk) => sum + chunk.length, 0)); // while it waits
    const encoder = await this.#encoders.reserve({ organization }, 1, group);
    try {
      const encode = () => encodeChunks(chunks, encoding, group, memory);
      const encoded = await this.#options.tracing.span('encoding', encode);
      this.#options.onEncoded?.(encoding);
      return encoded;
    } finally {
      encoder.free();
    }
  }

  /** From then on, the next statement answers new requests. */
  #close(group: RequestGroup): void {
    group.isStarted = true;
    if (this.#waiting.get(group.name) === group) this.#waiting.delete(group.name);
  }
}
