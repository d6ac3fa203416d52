import { BoundedMap } from '#runtime/flow/bounded-map.ts';
import { Budget, ClientGoneError } from '#runtime/flow/budget.ts';
import type { Encoding } from './accept-encoding.ts';
import { computeEtag } from './etag.ts';
import { LargeBodyReader } from './large-body-reader.ts';
import { maxSmallBytes } from './reads/authorized.ts';
import {
  getFingerprint,
  leftMs,
  type ReadRequest,
  type ReadResult,
  SharedStatements,
  type StatementOptions,
} from './shared-statements.ts';

const mebibyte = 1_048_576;

/** The part of the memory for small bodies. Unread large ones cannot delay them. */
const smallShare = 0.25;
/** The largest shares: of one key of the part for large bodies, of one organization of either part. */
const keyShare = 0.4;
const organizationShare = 0.6;

/** How many keys' organizations are remembered. About 3 MB. */
const maxKeys = 10_000;

/** Reads that may wait: of one holder (25 keys with nine reads each), and in total. */
const maxWaiting = { each: 250, all: 500 };

/**
 * Reads bodies within bounds of memory and of the database, for each key, each organization and the
 * process. What a read has reserved is freed when its response ends in any way.
 *
 * Every read runs as a small one. PostgreSQL makes no long list then and sends no large body, it
 * only decides, and the read runs again as a large one. Each statement checks the key and begins
 * after its requests, so a revocation during a wait is seen.
 */
export class BodyReader {
  readonly #statements: SharedStatements;
  readonly #memory: Budget<'organization'>;
  /**
   * Whose share a read takes, by `getFingerprint`: its key's organization, as a read of the key showed. Only
   * until then it is the one that the read names.
   */
  readonly #organizations = new BoundedMap<string, string>(maxKeys);
  readonly #large: LargeBodyReader;

  constructor(
    options: StatementOptions & {
      /** The most memory of bodies in this process, in MiB. */
      memoryMiB: number;
      databasePoolMax: number;
      /** How long a read waits in all, unless its request has a deadline. */
      readWaitMs: number;
      /** Called for each large body that was encoded. */
      onEncoded?: (encoding: Encoding) => void;
      /** Called for each read that had to wait, with the level whose limit was reached. */
      onWaited?: (end: 'admitted' | 'rejected' | 'gone', limit: 'key' | 'organization' | 'process') => void;
    },
  ) {
    const { memoryMiB, databasePoolMax, readWaitMs, onEncoded, onWaited = () => {}, ...statements } = options;
    const large = Math.floor(memoryMiB * mebibyte * (1 - smallShare));
    const small = memoryMiB * mebibyte - large;
    const wait = { maxWaiting, waitMs: readWaitMs, onWaited };
    this.#statements = new SharedStatements(statements);
    // The limiter bounds the small bodies of one key: 120 in a minute.
    this.#memory = new Budget<'organization'>({
      limits: { organization: small * organizationShare, process: small },
      ...wait,
    });
    const memory = { key: large * keyShare, organization: large * organizationShare, process: large };
    this.#large = new LargeBodyReader({ ...statements, databasePoolMax, onEncoded, memory, wait });
  }

  /** Returns what is reserved for small and for large bodies, and how many reads wait. */
  get state() {
    const { reserved, waiting } = this.#memory.state;
    const large = this.#large.state;
    return { smallBytes: reserved, largeBytes: large.bytes, waiting: waiting + large.waiting };
  }

  /** @throws BudgetFullError or ApiError at the deadline, ClientGoneError, the error of a statement */
  async read(request: ReadRequest): Promise<ReadResult> {
    const { organizationId, response } = request;
    const fingerprint = getFingerprint(request);
    const organization = this.#organizations.get(fingerprint) ?? organizationId;
    const reserving = this.#memory.reserve({ organization }, maxSmallBytes, response, leftMs(request));
    const memory = reserving instanceof Promise ? await reserving : reserving;
    let isKept = false;
    try {
      if (response.hasEnded) throw new ClientGoneError();
      const key = await this.#statements.read(request);
      if (key !== null && !this.#organizations.has(fingerprint))
        this.#organizations.set(fingerprint, key.organizationId);
      if (key?.decision !== 'ok') return { key, content: null };
      if (key.body !== null) {
        isKept = true;
        return { key, content: { etag: computeEtag(key.body), body: key.body } };
      }
    } finally {
      if (isKept) response.onEnd(() => memory.free());
      else memory.free();
    }
    return this.#large.read(request);
  }
}
