import { apiError } from '#domain/contract/errors.ts';
import type { AuthorizedRow } from '#domain/db/statements/authorized.ts';
import { ClientGone, createBudget, type Hold } from '#runtime/budget.ts';
import type { GuardedAnswer } from '#runtime/guarded-answer.ts';
import { runForClient } from '#runtime/run-for-client.ts';
import { type SharedChunks, shareChunks, smallAnswerBytes, tagOfText } from './answer-body.ts';
import type { ChunkedRead } from './chunked-read.ts';
import { listEtags } from './if-none-match.ts';
import { slowReadMs } from './read-batches.ts';

const mebibyte = 1_048_576;

/**
 * The part of the memory that is reserved for small answers. Unread large answers cannot delay
 * them.
 */
const smallShare = 0.25;

/** The largest shares of either part that one key and one organization may have. */
const keyShare = 0.4;
const organizationShare = 0.6;

/**
 * How many copies of a large answer are in memory while it arrives: its bytes, and the text of its
 * chunks until it is collected.
 */
const copiesWhileMade = 2;

/** The growth of a large answer from which its statement has to run twice. */
const growth = 1.125;

/**
 * The first large answer of an organization takes two tries; one more allows for a roster that
 * grows meanwhile.
 */
const maxTries = 4;

/** For how many organizations sizes are remembered, for each operation. About 2 MB for each. */
const maxRemembered = 20_000;

/**
 * Statements that may wait: of one holder (25 keys with nine reads each), and in total. The limiter
 * bounds the requests that wait for one of them.
 */
const maxWaiting = { each: 250, all: 500 };

/**
 * Large answers that are read and sent at once. The system takes up to 4 MB of each for a client
 * that does not read, which counts as memory of the pod. A partner with 20 parallel calls never
 * waits for this.
 */
const answersAtOnce = { key: 24, organization: 48, pod: 128 };

/**
 * The shares of the database's connections that may run statements with large answers, or with
 * answers of unknown size. A roster of 20,000 grants keeps a core of PostgreSQL busy for 300 ms;
 * three at once made other reads wait (p99 × 14 beside six organizations).
 */
const connectionShares = { large: 0.1, unknown: 0.3 };

/**
 * A read that needs memory: the key's fingerprint under its oldest pepper, and the path's
 * organization (null when it names none).
 */
export interface Reading {
  print: Buffer;
  organizationId: string | null;
  operationId: string;
  answer: GuardedAnswer;
}

/** What a statement returned about the key, beside its answer. */
export type ReadRow = Omit<AuthorizedRow, 'body'>;

/**
 * What the statement returned. `content` is null unless the key may read. Its body is text when
 * small, else chunks; null when all requests have it already.
 */
export interface Read {
  row: ReadRow | null;
  content: { etag: string; bytes: number; body: string | SharedChunks | null } | null;
}

/** The ways to run a read's statement; `room` is the largest size of its answer in bytes. */
interface ReadStatements {
  /** Runs with other reads, when the last answer was small and fast. */
  together(): Promise<AuthorizedRow | null>;
  alone(room: number): Promise<AuthorizedRow | null>;
  /**
   * Runs in chunks; returns none when the answer has one of these entity tags, or any tag when
   * null.
   */
  inChunks(room: number, unchanged: readonly string[] | null): Promise<ChunkedRead | null>;
}

/** What a read's last statement returned about an organization's answer. */
interface Known {
  bytes: number;
  isQuick: boolean;
}

/** The answer to a request that names no organization. */
const noAnswer: Known = { bytes: 0, isQuick: true };

/** Requests that one statement will answer. They gather until it begins. */
interface Gathering {
  answers: Set<GuardedAnswer>;
  read: Promise<Read>;
}

interface Together {
  key: string;
  name: string;
  reading: Reading;
  statements: ReadStatements;
  answers: Set<GuardedAnswer>;
}

/**
 * Bounds what answers hold in this process, from their statement until their clients' sockets have
 * taken them: for each key, each organization and the whole process.
 *
 * The memory is reserved before the statement runs, and the statement gets the amount as a bound: a
 * longer answer stays in PostgreSQL, and its statement runs again when there is room. Since that
 * statement also checks the key, it sees a revocation during the wait.
 *
 * Reads of one key whose answer is large, or not known to be small, share statement and bytes: one
 * statement runs, and the next answers all that gathered meanwhile. Each request's statement begins
 * after the request. Without this, 20 parallel calls for a roster of 20,000 grants took 20
 * statements (6.0 s on a busy machine, 7 refused), and 2 with it.
 */
export function createAnswerMemory(options: {
  /** The most that answers may hold in this process, in MiB. */
  memoryMiB: number;
  databasePoolMax: number;
  waitMs?: number;
  /** Called for each statement that had to wait, with the level whose limit was reached. */
  onWaited?: (end: 'admitted' | 'refused' | 'gone', limit: 'key' | 'organization' | 'pod') => void;
}) {
  const { memoryMiB, databasePoolMax, waitMs = 5_000, onWaited = () => {} } = options;
  const large = Math.floor(memoryMiB * mebibyte * (1 - smallShare));
  const small = memoryMiB * mebibyte - large;
  const common = { maxWaiting, waitMs, onWaited };
  const statementsAtOnce = (share: number) => ({
    organization: 1,
    pod: Math.max(1, Math.floor(databasePoolMax * share)),
  });
  const budgets = {
    // The limiter bounds the small answers of one key: 120 in a minute.
    small: createBudget<'organization'>({ limits: { organization: small * organizationShare, pod: small }, ...common }),
    answers: createBudget<'key' | 'organization'>({ limits: answersAtOnce, ...common }),
    // Such a statement takes hundreds of milliseconds of a connection that other reads need.
    largeStatements: createBudget<'organization'>({ limits: statementsAtOnce(connectionShares.large), ...common }),
    unknownStatements: createBudget<'organization'>({ limits: statementsAtOnce(connectionShares.unknown), ...common }),
    large: createBudget<'key' | 'organization'>({
      limits: { key: large * keyShare, organization: large * organizationShare, pod: large },
      ...common,
    }),
  };
  /** By operation, then by organization. */
  const answers = new Map<string, Map<string, Known>>();
  const gathering = new Map<string, Gathering>();
  const underWay = new Map<string, Promise<unknown>>();

  /** Returns what is known of an organization's answer, or null. */
  const findKnown = ({ organizationId, operationId }: Reading): Known | null =>
    organizationId === null ? noAnswer : (answers.get(operationId)?.get(organizationId) ?? null);

  const expectedBytes = (reading: Reading): number | null => findKnown(reading)?.bytes ?? null;

  function remember({ organizationId, bytes, elapsedMs }: ReadRow, { operationId }: Reading): void {
    if (bytes === null) return;
    const ofOperation = answers.get(operationId) ?? new Map<string, Known>();
    if (ofOperation.size === 0) answers.set(operationId, ofOperation);
    const isQuick = elapsedMs < slowReadMs;
    const known = ofOperation.get(organizationId);
    if (known?.bytes !== bytes || known.isQuick !== isQuick)
      setBounded(ofOperation, organizationId, { bytes, isQuick });
  }

  /** Runs a read that is known to be small. */
  async function readSmall(reading: Reading, statements: ReadStatements, mayShare: boolean): Promise<Read> {
    const { answer } = reading;
    const got = budgets.small.reserve({ organization: reading.organizationId }, smallAnswerBytes, answer);
    const hold = got instanceof Promise ? await got : got;
    const row = await runSmall(answer, statements, mayShare).finally(() => answer.onEnd(() => hold.release()));
    if (row !== null) remember(row, reading);
    if (row === null || row.bytes === null) return { row, content: null };
    if (row.body !== null) return { row, content: contentOfText(row.body, row.bytes) };
    hold.release();
    return readTogether(reading, statements);
  }

  /**
   * Waits until the key may be sent another large answer, then joins the requests that the next
   * statement answers.
   */
  async function readTogether(reading: Reading, statements: ReadStatements): Promise<Read> {
    const { answer, organizationId: organization } = reading;
    const key = reading.print.toString('latin1');
    const turn = await budgets.answers.reserve({ key, organization }, 1, answer);
    try {
      if (answer.hasEnded) throw new ClientGone();
      return await join(key, reading, statements);
    } finally {
      answer.onEnd(() => turn.release());
    }
  }

  function join(key: string, reading: Reading, statements: ReadStatements): Promise<Read> {
    const name = `${key} ${reading.organizationId} ${reading.operationId}`;
    const group = gathering.get(name) ?? gather(name, key, reading, statements);
    group.answers.add(reading.answer);
    return new Promise((resolve, reject) => {
      group.read.then(resolve, reject);
      reading.answer.onEnd(() => {
        if (gathering.get(name) === group) reject(new ClientGone());
      });
    });
  }

  function gather(name: string, key: string, reading: Reading, statements: ReadStatements): Gathering {
    const answers = new Set([reading.answer]);
    const before = underWay.get(name);
    const read = makeTogether({ key, name, reading, statements, answers }, before);
    const settled = Promise.allSettled([before, read]);
    underWay.set(name, settled);
    void settled.then(() => {
      if (underWay.get(name) === settled) underWay.delete(name);
    });
    const group = { answers, read };
    gathering.set(name, group);
    return group;
  }

  /** From then on, the next statement answers new requests. */
  function stopGathering({ name, answers }: Together): void {
    if (gathering.get(name)?.answers === answers) gathering.delete(name);
  }

  async function makeTogether(together: Together, before: Promise<unknown> | undefined): Promise<Read> {
    const endsAtMs = performance.now() + waitMs;
    try {
      if (before !== undefined) await waitForTurn(before, waitMs);
      for (let tries = 0; tries < maxTries; tries += 1) {
        const read = await makeOnce(together, endsAtMs);
        if (read !== 'too_large') return read;
      }
      throw apiError('unavailable');
    } finally {
      stopGathering(together);
    }
  }

  /**
   * Reserves memory and a share of the database, and runs the statement for the requests that have
   * gathered.
   */
  async function makeOnce(together: Together, endsAtMs: number): Promise<Read | 'too_large'> {
    const { key, reading, answers } = together;
    const expected = expectedBytes(reading);
    const room = isLarge(expected) ? Math.ceil(expected * growth) : smallAnswerBytes;
    const client = { onEnd: (callback: () => void) => onAllEnded(answers, callback) };
    const organization = reading.organizationId;
    const leftMs = () => Math.max(0, endsAtMs - performance.now());
    const hold = await (isLarge(expected)
      ? budgets.large.reserve({ key, organization }, room * copiesWhileMade, client, leftMs())
      : budgets.small.reserve({ organization }, room, client, leftMs()));
    let turn: Hold | undefined;
    try {
      const turns = isLarge(expected) ? budgets.largeStatements : budgets.unknownStatements;
      turn = await turns.reserve({ organization }, 1, client, leftMs());
      const read = await runOnce(together, room, hold);
      if (read === 'too_large' || read.content === null) hold.release();
      return read;
    } catch (error) {
      hold.release();
      throw error;
    } finally {
      turn?.release();
    }
  }

  async function runOnce(together: Together, room: number, hold: Hold): Promise<Read | 'too_large'> {
    const { reading, answers, statements } = together;
    if (hasAllEnded(answers)) throw new ClientGone();
    stopGathering(together);
    const client = { onEnd: (callback: () => void) => onAllEnded(answers, callback) };
    if (room === smallAnswerBytes) {
      const row = await runForClient(client, () => statements.alone(room));
      if (row !== null) remember(row, reading);
      return readOfText(row, answers, hold);
    }
    const read = await runForClient(client, () => statements.inChunks(room, tagsOfAll(answers)));
    if (read === null) return { row: null, content: null };
    remember(read.row, reading);
    return readOfChunks(read, answers, hold);
  }

  return {
    /**
     * Runs a read's statement when there is memory for its answer. The memory is released when the
     * answer ends in any way.
     *
     * @throws BudgetExhausted after the wait, or when too many wait already; ClientGone when the
     * client disconnected meanwhile.
     */
    read(reading: Reading, statements: ReadStatements): Promise<Read> {
      const known = findKnown(reading);
      return known === null || isLarge(known.bytes)
        ? readTogether(reading, statements)
        : readSmall(reading, statements, known.isQuick);
    },

    /** Returns what is held for small and for large answers, and how many statements wait. */
    get state() {
      const { small, large } = budgets;
      const waiting = Object.values(budgets).reduce((sum, { state }) => sum + state.waiting, 0);
      return { smallBytes: small.state.held, largeBytes: large.state.held, waiting };
    },
  };
}

export type AnswerMemory = ReturnType<typeof createAnswerMemory>;

/** Runs the statement of a small read. One that others share continues when this client leaves. */
async function runSmall(answer: GuardedAnswer, statements: ReadStatements, mayShare: boolean) {
  if (answer.hasEnded) throw new ClientGone();
  if (mayShare) return statements.together();
  return runForClient(answer, () => statements.alone(smallAnswerBytes));
}

const isLarge = (bytes: number | null): bytes is number => bytes !== null && bytes > smallAnswerBytes;

const contentOfText = (body: string, bytes: number) => ({ etag: tagOfText(body), bytes, body });

/** Returns what was read, in memory that is held until the last of the answers has ended. */
function readOfText(row: AuthorizedRow | null, answers: Set<GuardedAnswer>, hold: Hold): Read | 'too_large' {
  const bytes = row?.bytes ?? null;
  if (row === null || bytes === null) return { row, content: null };
  if (row.body === null) return 'too_large';
  hold.resize(bytes * answers.size);
  onAllEnded(answers, () => hold.release());
  return { row, content: contentOfText(row.body, bytes) };
}

/** The same for chunks. Nothing is held when no body is needed. */
function readOfChunks({ row, chunks }: ChunkedRead, answers: Set<GuardedAnswer>, hold: Hold): Read | 'too_large' {
  const { bytes, etag } = row;
  if (bytes === null) return { row, content: null };
  if (etag === null) return 'too_large';
  if (chunks.length > 0) return { row, content: { etag, bytes, body: shareChunks(chunks, answers, hold) } };
  hold.release();
  return { row, content: { etag, bytes, body: null } };
}

/** Returns the entity tags with which none of the answers needs a body; null: any. */
function tagsOfAll(answers: Set<GuardedAnswer>): string[] | null {
  const named = [...answers]
    .filter(({ hasEnded }) => !hasEnded)
    .map(({ req }) => listEtags(req.headers['if-none-match'] ?? ''))
    .filter((tags) => tags !== null);
  const [first] = named;
  return first?.filter((tag) => named.every((tags) => tags.includes(tag))) ?? null;
}

const hasAllEnded = (answers: Set<GuardedAnswer>) => [...answers].every(({ hasEnded }) => hasEnded);

/** Calls back when the last of the answers has ended, including those that join later. */
function onAllEnded(answers: Set<GuardedAnswer>, callback: () => void): void {
  const next = [...answers].find(({ hasEnded }) => !hasEnded);
  if (next === undefined) callback();
  else next.onEnd(() => onAllEnded(answers, callback));
}

/** @throws ApiError `unavailable` when the turn does not come in time. */
async function waitForTurn(before: Promise<unknown>, atMostMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(apiError('unavailable')), atMostMs);
  });
  await Promise.race([before, late]).finally(() => clearTimeout(timer));
}

/** Sets a value, and removes the oldest one when there are too many. */
function setBounded<V>(map: Map<string, V>, name: string, value: V): void {
  if (map.size >= maxRemembered && !map.has(name)) map.delete(map.keys().next().value ?? '');
  map.set(name, value);
}
