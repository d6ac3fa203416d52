import { apiError } from '#domain/contract/errors.ts';
import { type KeyRow, maxSmallBytes } from '#domain/db/statements/authorized.ts';
import { Budget, ClientGone, type Ends } from '#runtime/budget.ts';
import type { TrackedResponse } from '#runtime/tracked-response.ts';
import { etagOf, listEtags, SharedBody } from './body.ts';
import type { ReadRequest, ReadStatements } from './read-statements.ts';

const mebibyte = 1_048_576;

/** The part of the memory for small bodies. Unread large ones cannot delay them. */
const smallShare = 0.25;
/** The largest shares of either part that one key and one organization may have. */
const keyShare = 0.4;
const organizationShare = 0.6;

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
const readersAtOnce = { key: 24, organization: 48, pod: 128 };

/**
 * The share of the database's connections for large bodies. A roster of 20,000 grants keeps a core
 * of PostgreSQL busy for 300 ms; three at once made other reads wait (p99 × 14).
 */
const connectionShare = 0.1;

/** How long a read waits in all, for anything but its statement. */
export const readWaitMs = 5_000;

/** Reads that may wait: of one holder (25 keys with nine reads each), and in total. */
const maxWaiting = { each: 250, all: 500 };

/**
 * What a read found. `key` is null when no key has the fingerprint; `content` is null unless the
 * key may read. Its body is text when small; null when no request needs it.
 */
export interface ReadResult {
  key: KeyRow | null;
  content: { etag: string; body: string | SharedBody | null } | null;
}

/** Requests of one key for one large body, which its next statement answers. */
class Group implements Ends {
  readonly name: string;
  /** The fingerprint under the oldest pepper. */
  readonly key: string;
  /** The first of the requests. */
  readonly request: ReadRequest;
  readonly #responses = new Set<TrackedResponse>();
  readonly #result = Promise.withResolvers<ReadResult>();
  hasBegun = false;

  constructor(name: string, key: string, request: ReadRequest) {
    this.name = name;
    this.key = key;
    this.request = request;
  }

  get responses(): Iterable<TrackedResponse> {
    return this.#responses;
  }

  get hasEnded(): boolean {
    return [...this.#responses].every(({ hasEnded }) => hasEnded);
  }

  /** @throws ClientGone when the client disconnected before the statement began. */
  join(response: TrackedResponse): Promise<ReadResult> {
    this.#responses.add(response);
    return new Promise((resolve, reject) => {
      this.#result.promise.then(resolve, reject);
      response.onEnd(() => {
        if (!this.hasBegun) reject(new ClientGone());
      });
    });
  }

  settle(read: Promise<ReadResult>): void {
    read.then(this.#result.resolve, this.#result.reject);
  }

  /** Calls back when the last of the responses has ended, including those that join later. */
  onEnd(callback: () => void): void {
    const next = [...this.#responses].find(({ hasEnded }) => !hasEnded);
    if (next === undefined) callback();
    else next.onEnd(() => this.onEnd(callback));
  }

  /** The entity tags with which none of the responses needs a body; null: any. */
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
 * Runs reads within bounds of memory and of the database, for each key, each organization and the
 * process. What a read holds is released when its response ends in any way.
 *
 * Every read runs as a small one. PostgreSQL makes no large body then, it only decides. Such a read
 * waits with others of its key for memory and a connection, and one statement answers all of them:
 * 20 parallel calls for a roster of 20,000 grants take 2 statements. The memory is reserved before
 * the statement, which gets the amount as a bound. Each statement checks the key and begins after
 * its requests, so a revocation during a wait is seen.
 */
export class BoundedReads {
  readonly #statements: ReadStatements;
  readonly #small: Budget<'organization'>;
  readonly #readers: Budget<'key' | 'organization'>;
  readonly #large: Budget<'key' | 'organization'>;
  readonly #largeStatements: Budget<'organization'>;
  readonly #usualBytes: number;
  /** Bytes of bodies that are longer than usual, by organization and operation. */
  readonly #longer = new Map<string, number>();
  /** Groups whose statement has not begun, by key, organization and operation. */
  readonly #groups = new Map<string, Group>();

  constructor(options: {
    statements: ReadStatements;
    /** The most that bodies may hold in this process, in MiB. */
    memoryMiB: number;
    databasePoolMax: number;
    /** Called for each read that had to wait, with the level whose limit was reached. */
    onWaited?: (end: 'admitted' | 'refused' | 'gone', limit: 'key' | 'organization' | 'pod') => void;
  }) {
    const { memoryMiB, databasePoolMax, onWaited = () => {} } = options;
    const large = Math.floor(memoryMiB * mebibyte * (1 - smallShare));
    const small = memoryMiB * mebibyte - large;
    const common = { maxWaiting, waitMs: readWaitMs, onWaited };
    this.#statements = options.statements;
    // The limiter bounds the small bodies of one key: 120 in a minute.
    this.#small = new Budget<'organization'>({
      limits: { organization: small * organizationShare, pod: small },
      ...common,
    });
    this.#readers = new Budget({ limits: readersAtOnce, ...common });
    this.#large = new Budget({
      limits: { key: large * keyShare, organization: large * organizationShare, pod: large },
      ...common,
    });
    const connections = Math.max(1, Math.floor(databasePoolMax * connectionShare));
    this.#largeStatements = new Budget<'organization'>({ limits: { organization: 1, pod: connections }, ...common });
    this.#usualBytes = Math.min(usualBytes, Math.floor((large * keyShare) / copiesWhileMade));
  }

  /** Returns what is held for small and for large bodies, and how many reads wait. */
  get state() {
    const budgets = [this.#small, this.#readers, this.#large, this.#largeStatements];
    const waiting = budgets.reduce((sum, { state }) => sum + state.waiting, 0);
    return { smallBytes: this.#small.state.held, largeBytes: this.#large.state.held, waiting };
  }

  /** @throws BudgetExhausted or ApiError at the deadline, ClientGone, the error of a statement */
  async read(request: ReadRequest): Promise<ReadResult> {
    const { organizationId: organization, response } = request;
    const reserved = this.#small.reserve({ organization }, maxSmallBytes, response, leftMs(request));
    const hold = reserved instanceof Promise ? await reserved : reserved;
    let isHeld = false;
    try {
      if (response.hasEnded) throw new ClientGone();
      const key = await this.#statements.small(request);
      if (key?.decision !== 'ok') return { key, content: null };
      if (key.body !== null) {
        isHeld = true;
        return { key, content: { etag: etagOf(key.body), body: key.body } };
      }
    } finally {
      if (isHeld) response.onEnd(() => hold.release());
      else hold.release();
    }
    return this.#readLarge(request);
  }

  async #readLarge(request: ReadRequest): Promise<ReadResult> {
    const { endpoint, fingerprints, organizationId: organization, response } = request;
    const key = fingerprints.at(-1)?.toString('latin1') ?? '';
    const reader = await this.#readers.reserve({ key, organization }, 1, response, leftMs(request));
    try {
      if (response.hasEnded) throw new ClientGone();
      const name = `${key} ${organization} ${endpoint.operationId}`;
      const gathering = this.#groups.get(name);
      const group = gathering ?? new Group(name, key, request);
      const result = group.join(response);
      if (gathering === undefined) {
        this.#groups.set(name, group);
        group.settle(this.#readFor(group));
      }
      return await result;
    } finally {
      response.onEnd(() => reader.release());
    }
  }

  /** Reads for the requests that gather until the statement begins. */
  async #readFor(group: Group): Promise<ReadResult> {
    const { endpoint, organizationId } = group.request;
    const list = `${organizationId} ${endpoint.operationId}`;
    let maxBytes = Math.max(this.#usualBytes, Math.ceil((this.#longer.get(list) ?? 0) * growth));
    try {
      for (let tries = 0; tries < maxTries; tries += 1) {
        const read = await this.#tryFor(group, maxBytes);
        if (typeof read !== 'number') return read;
        this.#remember(list, read);
        maxBytes = Math.ceil(read * growth);
      }
      throw apiError('unavailable');
    } finally {
      this.#stopGathering(group);
    }
  }

  /** Waits for memory and a connection, and runs the statement. A number: the bytes of a longer body. */
  async #tryFor(group: Group, maxBytes: number): Promise<ReadResult | number> {
    const { key, request } = group;
    const { organizationId: organization } = request;
    const bytes = maxBytes * copiesWhileMade;
    const hold = await this.#large.reserve({ key, organization }, bytes, group, leftMs(request));
    let isHeld = false;
    try {
      const connection = await this.#largeStatements.reserve({ organization }, 1, group, leftMs(request));
      const run = () => {
        if (group.hasEnded) throw new ClientGone();
        this.#stopGathering(group);
        return this.#statements.large(request, group, maxBytes, group.unchanged);
      };
      const read = await Promise.try(run).finally(() => connection.release());
      if (read === null || read.row.bytes === null) return { key: read?.row ?? null, content: null };
      const { row, chunks } = read;
      if (row.etag === null) return read.row.bytes;
      isHeld = chunks.length > 0;
      const body = isHeld ? new SharedBody(chunks, group.responses, hold) : null;
      return { key: row, content: { etag: row.etag, body } };
    } finally {
      if (!isHeld) hold.release();
    }
  }

  /** From then on, the next statement answers new requests. */
  #stopGathering(group: Group): void {
    group.hasBegun = true;
    if (this.#groups.get(group.name) === group) this.#groups.delete(group.name);
  }

  #remember(list: string, bytes: number): void {
    if (this.#longer.size >= maxLonger) this.#longer.delete(this.#longer.keys().next().value ?? '');
    this.#longer.set(list, bytes);
  }
}

const leftMs = ({ deadlineMs }: ReadRequest): number => Math.max(0, deadlineMs - performance.now());
