import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import type { Pool } from 'pg';
import pg from 'pg';
import { factsOf, type Outcome } from '#delivery/post/outcome.ts';
import { postDeadlineMs } from '#delivery/times.ts';
import { isServerAway } from '#domain/db/server-away.ts';
import {
  type AdmittedRow,
  admitAttemptSql,
  awaitAdmissionSql,
  findAdmissionSql,
  type LostRow,
  type RecordedRow,
  recordLostSql,
  recordOutcomeSql,
} from '#domain/db/statements/attempts.ts';
import { waitAfterInternalErrorMs, waitForSlotMs } from './schedule.ts';
import {
  type AttemptInput,
  type AttemptResult,
  attemptTimeoutMs,
  type Begun,
  type DeliveryActivities,
  type DeliveryKey,
  type DeliveryRound,
  type LostAttemptInput,
  roundOf,
  type UnderWay,
} from './types.ts';

export type PostOutcome = Outcome;

/** What the signature of an attempt covers. */
interface ToBeSigned {
  sealed: Buffer[];
  body: Buffer;
  /** Unix time in seconds by PostgreSQL's clock: receivers refuse old signatures. */
  timestampSeconds: number;
}

export interface ActivityDependencies {
  pool: Pool;
  /** Makes one HTTP request for a webhook; never throws because of the receiver. */
  post: (request: {
    organizationId: string;
    webhookId: string;
    url: string;
    headers: Record<string, string>;
    body: Buffer;
  }) => Promise<PostOutcome>;
  /**
   * Returns the headers of one attempt, signed with sealed secrets (newest first) of this webhook.
   *
   * @throws Error when one cannot be unsealed.
   */
  sign: (delivery: DeliveryKey, signed: ToBeSigned) => Record<string, string>;
  onAttempt?: (line: AttemptLine) => void;
  /** Called for an attempt that was in progress when its process ended. */
  onLost?: (lost: LostAttempt) => void;
  /** Called with an internal error whose text is stored nowhere else, and its stable code. */
  onInternalError?: (error: unknown, delivery: DeliveryKey, code: InternalErrorCode) => void;
}

/**
 * `internal_error`: an attempt could not be prepared. `activity_failed`: it could not be admitted,
 * made or recorded. `delivery_missing`: PostgreSQL does not have the delivery of an outcome.
 */
export type InternalErrorCode = 'internal_error' | 'activity_failed' | 'delivery_missing';

/** What logs and metrics report of an attempt: ids, its outcome and times. */
export interface AttemptLine extends LostAttempt {
  type: string;
  outcome: 'delivered' | 'failed' | 'exhausted' | 'internal_error';
  status: number | null;
  cause: string;
  timingsMs: PostOutcome['timingsMs'];
}

/** An attempt that was closed as lost; `startedAtMs` is Unix time by PostgreSQL's clock. */
export interface LostAttempt extends DeliveryRound {
  number: number;
  startedAtMs: number;
}

/**
 * How often the schedule's last attempt is made again after it was lost. The receiver may not have
 * got it, but if the attempt itself kills the worker, the delivery must end.
 */
const lostLastRepeats = 3;
/** The part of an attempt's time that is left for its report to Temporal. */
const reserveMs = 2_000;
const uniqueViolation = '23505';

/**
 * How long admitting an attempt may take. A post that begins later could last longer than
 * `attemptTimeoutMs`, after which another attempt may begin.
 */
const admissionTimeoutMs = attemptTimeoutMs - postDeadlineMs - reserveMs;

type Admitted = AdmittedRow & { number: number; startedAt: string; startedAtMs: number };

/** Creates the activities of deliveries, over the connections of the worker that runs them. */
export function createDeliveryActivities(deps: ActivityDependencies): DeliveryActivities {
  const { pool, post, sign, onAttempt = () => {}, onLost = () => {}, onInternalError = () => {} } = deps;

  async function attemptDelivery(input: AttemptInput): Promise<AttemptResult | Begun> {
    const beganAt = performance.now();
    const admitted = await admit(pool, input, beganAt + admissionTimeoutMs);
    if (admitted === null) return { kind: 'closed' };
    if (admitted.isBegun) return { kind: 'begun' };
    if (!isAdmitted(admitted)) return { kind: 'postponed', waitMs: waitForSlotMs(admitted.queue) };
    const isLate = performance.now() - beganAt > admissionTimeoutMs;
    const request = prepare(input, admitted, isLate);
    const outcome = request === null ? internalError : await post(request);
    const result = resultOf(outcome, input);
    await record(input, admitted, { outcome, result, headers: request?.headers ?? null }, beganAt);
    const { number, type, startedAtMs } = admitted;
    const { status, cause, timingsMs } = outcome;
    const ended = nameOutcome(result);
    onAttempt({ ...roundOf(input), number, type, outcome: ended, status, cause, startedAtMs, timingsMs });
    return result;
  }

  /** Returns the signed request, or null when it could not be prepared, which is reported. */
  function prepare(input: AttemptInput, admitted: Admitted, isLate: boolean) {
    const { organizationId, webhookId } = input;
    const { number, url, sequence, startedAtMs } = admitted;
    try {
      if (isLate) throw new Error(`admitting the attempt took more than ${admissionTimeoutMs} ms`);
      if (admitted.body === null) throw new Error("the event's row is missing");
      if (admitted.secrets === null) throw new Error('the webhook has no valid secret');
      const body = Buffer.from(admitted.body);
      const sealed = admitted.secrets.map((secret) => Buffer.from(secret.sealed, 'base64'));
      const headers: Record<string, string> = {
        ...sign(input, { sealed, body, timestampSeconds: Math.floor(startedAtMs / 1000) }),
        'webhook-attempt': String(number),
        ...(sequence === null ? {} : { 'webhook-sequence': sequence }),
      };
      return { organizationId, webhookId, url, headers, body };
    } catch (error) {
      onInternalError(error, input, 'internal_error');
      return null;
    }
  }

  async function record(
    input: AttemptInput,
    admitted: Admitted,
    ended: { outcome: PostOutcome; result: AttemptResult; headers: Record<string, string> | null },
    beganAt: number,
  ): Promise<void> {
    const { organizationId, webhookId, eventId, round, nextDelayMs } = input;
    const { outcome, result, headers } = ended;
    const follows = result.kind === 'delivered' || result.kind === 'exhausted' ? result.kind : 'waiting';
    const waitMs = 'waitMs' in result ? result.waitMs : null;
    const { status, cause, explanation, timingsMs, peerAddress, keptBytes, answer, isInternalError } = outcome;
    const values = [
      organizationId,
      webhookId,
      eventId,
      admitted.number,
      status,
      cause,
      explanation,
      JSON.stringify(timingsMs),
      peerAddress,
      keptBytes,
      answer,
      follows,
      waitMs,
      !isInternalError && follows !== 'delivered',
      headers === null ? null : JSON.stringify(headers),
      admitted.startedAt,
      round,
      nextDelayMs === null,
      admitted.secrets?.map(({ id }) => id) ?? [],
    ];
    const query = { name: 'recordOutcome', text: recordOutcomeSql, values };
    const giveUpAt = beganAt + attemptTimeoutMs - reserveMs;
    const { rows } = await retriedWhileAway(() => pool.query<RecordedRow>(query), giveUpAt);
    if (rows[0]?.hasDelivery !== false) return;
    const what = `attempt ${admitted.number} ended (${cause}), but its delivery is not in the database any more`;
    onInternalError(new Error(what), input, 'delivery_missing');
  }

  async function recordLostAttempt(input: LostAttemptInput): Promise<AttemptResult | UnderWay> {
    const { organizationId, webhookId, eventId, round } = input;
    const next = resultOfLoss(input);
    const waitMs = 'waitMs' in next ? next.waitMs : null;
    const follows = waitMs === null ? 'exhausted' : 'waiting';
    const values = [organizationId, webhookId, eventId, round, follows, waitMs, attemptTimeoutMs];
    const { rows } = await pool.query<LostRow>({ name: 'recordLost', text: recordLostSql, values });
    const row = rows[0];
    if (row?.underWayMs != null)
      return { kind: 'underWay', waitMs: Math.max(1, Math.ceil(attemptTimeoutMs - row.underWayMs)) };
    if (row?.number != null && row.startedAtMs !== null)
      onLost({ ...roundOf(input), number: row.number, startedAtMs: row.startedAtMs });
    return row?.closed ? next : resultAfterLoss(row, input.nextDelayMs);
  }

  const onFailed = (cause: unknown, input: DeliveryKey) => onInternalError(cause, input, 'activity_failed');
  return {
    attemptDelivery: withoutErrorText(attemptDelivery, onFailed),
    recordLostAttempt: withoutErrorText(recordLostAttempt, onFailed),
  };
}

/**
 * Returns an activity that reports an error to `onError` and fails without its text. Temporal
 * stores what a failed activity reports, and an error's text could quote a value.
 */
export function withoutErrorText<Input, Result>(
  activity: (input: Input) => Promise<Result>,
  onError: (cause: unknown, input: Input) => void,
): (input: Input) => Promise<Result> {
  return async (input) => {
    try {
      return await activity(input);
    } catch (cause) {
      onError(cause, input);
      const failure = ApplicationFailure.create({ message: 'internal error; see the worker log' });
      failure.stack = '';
      throw failure;
    }
  };
}

/** The outcome of an attempt that sent nothing. */
export const internalError: PostOutcome = {
  ...factsOf('internal_error'),
  status: null,
  cause: 'internal_error',
  timingsMs: { dns: null, connect: null, tls: null, firstByte: null, total: 0 },
  peerAddress: null,
  keptBytes: 0,
  answer: Buffer.alloc(0),
  retryAfterSeconds: null,
};

const isAdmitted = (row: AdmittedRow): row is Admitted => row.number !== null;

/** Returns the name of a result for logs and metrics. */
function nameOutcome(result: AttemptResult): AttemptLine['outcome'] {
  if (result.kind === 'postponed' || result.kind === 'closed') return 'internal_error';
  return result.kind;
}

/** Returns how a round continues after a lost attempt. */
function resultOfLoss({ nextDelayMs, lostLast }: LostAttemptInput): AttemptResult {
  if (nextDelayMs !== null) return { kind: 'failed', waitMs: nextDelayMs };
  if (lostLast >= lostLastRepeats) return { kind: 'exhausted' };
  return { kind: 'postponed', waitMs: waitAfterInternalErrorMs(lostLast, Math.random()), because: 'lost' };
}

/**
 * Returns how a round continues when none of its attempts is in progress: the last one was never
 * admitted, or only its report was lost.
 */
function resultAfterLoss(row: LostRow | undefined, nextDelayMs: number | null): AttemptResult {
  if (!row?.open) return { kind: 'closed' };
  const dueInMs = row.dueInMs ?? 0;
  const isRecorded = dueInMs > 0 && nextDelayMs !== null;
  return isRecorded ? { kind: 'failed', waitMs: dueInMs } : { kind: 'postponed', waitMs: Math.max(dueInMs, 1_000) };
}

/**
 * Admits the attempt. When the reply is lost, the admission may have been committed: it is looked
 * up by its id before it is requested again, so that it uses up no attempt of the schedule.
 *
 * @param giveUpAt - by `performance.now`; an error after it is thrown.
 * @returns null when the delivery is not open to this round; `number` null without a free slot.
 */
async function admit(pool: Pool, input: AttemptInput, giveUpAt: number): Promise<AdmittedRow | null> {
  const admissionId = randomUUID();
  for (let isReplyLost = false; ; isReplyLost = true) {
    try {
      const own = isReplyLost ? await findAdmission(pool, input, admissionId) : undefined;
      const asked = own ?? (await askForAdmission(pool, input, admissionId));
      // The first request may have been admitted while this one ran, which was then refused.
      if (asked !== noSlot || !isReplyLost) return asked;
      return (await findAdmission(pool, input, admissionId)) ?? noSlot;
    } catch (error) {
      if (!isConnectionLost(error) || performance.now() > giveUpAt) throw error;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }
}

/** Tries another concurrency slot when another worker takes the same one at the same time. */
async function askForAdmission(pool: Pool, input: AttemptInput, admissionId: string): Promise<AdmittedRow | null> {
  const { organizationId, webhookId, eventId, round, nextDelayMs, onlyAsFirst = false } = input;
  const values = [organizationId, webhookId, eventId, round, nextDelayMs === null, onlyAsFirst, admissionId];
  for (let tries = 1; tries <= 5; tries += 1) {
    try {
      const { rows } = await pool.query<AdmittedRow>({ name: 'admitAttempt', text: admitAttemptSql, values });
      return rows[0] ?? null;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError && error.code === uniqueViolation)) throw error;
    }
  }
  return noSlot;
}

/** Two statements: the snapshot of the second one includes what the first one waited for. */
async function findAdmission(
  pool: Pool,
  { organizationId, webhookId, eventId }: DeliveryKey,
  admissionId: string,
): Promise<AdmittedRow | undefined> {
  const delivery = [organizationId, webhookId, eventId];
  await pool.query(awaitAdmissionSql, delivery);
  const { rows } = await pool.query<AdmittedRow>(findAdmissionSql, [...delivery, admissionId]);
  return rows[0];
}

/** Returns whether the connection broke, or its server is away, full, or not the primary. */
const isConnectionLost = (error: unknown): boolean => !(error instanceof pg.DatabaseError) || isServerAway(error);

/** The result when other attempts took the last free concurrency slot several times. */
const noSlot: AdmittedRow = {
  number: null,
  isBegun: false,
  queue: null,
  startedAt: null,
  startedAtMs: null,
  url: '',
  type: '',
  body: null,
  sequence: null,
  secrets: null,
};

function resultOf(outcome: PostOutcome, { nextDelayMs, internalErrors }: AttemptInput): AttemptResult {
  if (outcome.kind === 'delivered') return { kind: 'delivered' };
  if (outcome.isInternalError)
    return {
      kind: 'postponed',
      waitMs: waitAfterInternalErrorMs(internalErrors, Math.random()),
      because: 'internalError',
    };
  if (nextDelayMs === null) return { kind: 'exhausted' };
  const floorMs = (outcome.retryAfterSeconds ?? 0) * 1000;
  return { kind: 'failed', waitMs: Math.max(nextDelayMs, floorMs) };
}

/**
 * Retries a write while the database is away, until `giveUpAt` (by `performance.now`). After that
 * the attempt is closed as lost, and an accepted event is posted again.
 */
async function retriedWhileAway<Result>(write: () => Promise<Result>, giveUpAt: number): Promise<Result> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (performance.now() > giveUpAt) throw error;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }
}
