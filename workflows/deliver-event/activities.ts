import { ApplicationFailure } from '@temporalio/common';
import type { Pool } from 'pg';
import pg from 'pg';
import {
  type AdmittedRow,
  admitAttemptSql,
  type LostRow,
  recordLostSql,
  recordOutcomeSql,
} from '#domain/db/queries/attempts.ts';
import { waitAfterOwnFaultMs, waitForPlaceMs } from './schedule.ts';
import {
  type AttemptInput,
  type AttemptResult,
  attemptTimeoutMs,
  type Begun,
  type DeliveryActivities,
  type DeliveryKey,
  type LostAttemptInput,
  type UnderWay,
} from './types.ts';

/** What one post came to, as the delivery's record needs it. */
export interface PostOutcome {
  kind: 'delivered' | 'refused' | 'failed';
  status: number | null;
  /** A stable code, and a sentence with the remedy; neither holds a secret, a body or a URL's query. */
  cause: string;
  explanation: string;
  timingsMs: AttemptTimings;
  peerAddress: string | null;
  keptBytes: number;
  /** At most 16 KiB of the answer. */
  answer: Buffer;
  retryAfterSeconds: number | null;
  /** A fault of our own egress, which does not use up the receiver's attempts. */
  ownFault: boolean;
}

/** Lengths of the phases in order, whole ms; null or absent when one was not completed or not needed. */
export interface AttemptTimings {
  dns?: number | null;
  connect?: number | null;
  tls?: number | null;
  /** From the request's hand-over to the first byte of an answer. */
  firstByte?: number | null;
  total: number;
}

export interface ActivityDependencies {
  pool: Pool;
  /** One HTTP attempt for a webhook; never throws for what the receiver does. */
  post: (request: {
    webhookId: string;
    url: string;
    headers: Record<string, string>;
    body: Buffer;
  }) => Promise<PostOutcome>;
  /** The headers of one attempt, signed with secrets that are sealed (newest first) and open only for this webhook. */
  sign: (delivery: DeliveryKey, sealed: Buffer[], body: Buffer) => Record<string, string>;
  onAttempt?: (line: AttemptLine) => void;
  /** Told of an attempt that was found under way without a process that makes it. */
  onLost?: (lost: LostAttempt) => void;
  /** Told of a fault of ours before it becomes a failure without its text; the attempt goes on as lost. */
  onFault?: (cause: unknown, delivery: DeliveryKey) => void;
}

/** What logs and metrics tell of an attempt: ids, a verdict and times. */
export interface AttemptLine extends DeliveryKey {
  round: number;
  number: number;
  type: string;
  outcome: AttemptResult['kind'];
  status: number | null;
  cause: string;
  /** Unix time. */
  startedAtMs: number;
  timingsMs: AttemptTimings;
}

/** An attempt that was closed as lost; `startedAtMs` is Unix time by PostgreSQL's clock. */
export interface LostAttempt extends DeliveryKey {
  round: number;
  number: number;
  startedAtMs: number;
}

/**
 * How often the schedule's last attempt is made again after it was lost. The receiver may never have had it, by our fault; but whatever kills the worker in each of them is not mended by a
 * fifth, and the delivery must end at some time.
 */
const lostLastRepeats = 3;
/** What is left of an attempt's time when its outcome is given up: as long as the news of it takes to Temporal. */
const reserveMs = 2_000;
const uniqueViolation = '23505';

/** Makes the activities of deliveries, over the connections of the worker that runs them. */
export function createDeliveryActivities(deps: ActivityDependencies): DeliveryActivities {
  const { pool, post, sign, onAttempt = () => {}, onLost = () => {}, onFault = () => {} } = deps;

  async function attemptDelivery(input: AttemptInput): Promise<AttemptResult | Begun> {
    const giveUpAt = performance.now() + attemptTimeoutMs - reserveMs;
    const admitted = await admit(pool, input);
    if (admitted === null) return { kind: 'closed' };
    if (admitted.isBegun) return { kind: 'begun' };
    const { number, url, type, body: text, secrets, sequence, queue } = admitted;
    if (number === null) return { kind: 'postponed', waitMs: waitForPlaceMs(queue) };
    const body = Buffer.from(text);
    const sealed = secrets.map((secret) => Buffer.from(secret.sealed, 'base64'));
    const signed = sign(input, sealed, body);
    const headers = {
      ...signed,
      'webhook-attempt': String(number),
      ...(sequence === null ? {} : { 'webhook-sequence': sequence }),
    };
    const startedAtMs = Date.now();
    const outcome = await post({ webhookId: input.webhookId, url, headers, body });
    const result = resultOf(outcome, input);
    await record({ ...input, number, headers }, outcome, result, giveUpAt);
    const { organizationId, webhookId, eventId, round } = input;
    const { status, cause, timingsMs } = outcome;
    onAttempt({
      ...{ organizationId, webhookId, eventId, round, number, type },
      ...{ outcome: result.kind, status, cause, startedAtMs, timingsMs },
    });
    return result;
  }

  async function record(
    made: DeliveryKey & { number: number; headers: Record<string, string> },
    outcome: PostOutcome,
    result: AttemptResult,
    giveUpAt: number,
  ): Promise<void> {
    const { organizationId, webhookId, eventId, number } = made;
    const follows = result.kind === 'delivered' || result.kind === 'exhausted' ? result.kind : 'waiting';
    const waitMs = 'waitMs' in result ? result.waitMs : null;
    const { status, cause, explanation, timingsMs, peerAddress, keptBytes, answer, ownFault } = outcome;
    const values = [
      ...[
        organizationId,
        webhookId,
        eventId,
        number,
        status,
        cause,
        explanation,
        JSON.stringify(timingsMs),
        peerAddress,
      ],
      ...[keptBytes, answer, follows, waitMs, !ownFault && follows !== 'delivered'],
      JSON.stringify(made.headers),
    ];
    await retriedWhileAway(() => pool.query({ name: 'recordOutcome', text: recordOutcomeSql, values }), giveUpAt);
  }

  async function recordLostAttempt(input: LostAttemptInput): Promise<AttemptResult | UnderWay> {
    const { organizationId, webhookId, eventId, round, lostAfterMs = 0 } = input;
    const next = resultOfLoss(input);
    const waitMs = 'waitMs' in next ? next.waitMs : null;
    const follows = waitMs === null ? 'exhausted' : 'waiting';
    const values = [organizationId, webhookId, eventId, round, follows, waitMs, lostAfterMs];
    const { rows } = await pool.query<LostRow>({ name: 'recordLost', text: recordLostSql, values });
    const row = rows[0];
    if (row?.underWayMs != null)
      return { kind: 'underWay', waitMs: Math.max(1, Math.ceil(lostAfterMs - row.underWayMs)) };
    if (row?.number != null && row.startedAtMs !== null)
      onLost({ organizationId, webhookId, eventId, round, number: row.number, startedAtMs: row.startedAtMs });
    return row?.closed ? next : resultUnlost(row, input.nextDelayMs);
  }

  /** Temporal keeps what a failed activity says, and no text of an error may get there: it could quote a value. */
  const withoutText =
    <Input extends AttemptInput, Result>(activity: (input: Input) => Promise<Result>) =>
    async (input: Input): Promise<Result> => {
      try {
        return await activity(input);
      } catch (cause) {
        onFault(cause, input);
        const failure = ApplicationFailure.create({ message: 'a fault of our own, told in the worker’s log' });
        failure.stack = '';
        throw failure;
      }
    };

  return { attemptDelivery: withoutText(attemptDelivery), recordLostAttempt: withoutText(recordLostAttempt) };
}

/** How a round goes on after an attempt that was lost. */
function resultOfLoss({ nextDelayMs, lostLast = lostLastRepeats }: LostAttemptInput): AttemptResult {
  if (nextDelayMs !== null) return { kind: 'failed', waitMs: nextDelayMs };
  if (lostLast >= lostLastRepeats) return { kind: 'exhausted' };
  return { kind: 'postponed', waitMs: waitAfterOwnFaultMs(lostLast, Math.random()), because: 'lost' };
}

/** How a round goes on when no attempt of it is under way: the last one was never admitted, or only the news of its outcome was lost. */
function resultUnlost(row: LostRow | undefined, nextDelayMs: number | null): AttemptResult {
  if (!row?.open) return { kind: 'closed' };
  const dueInMs = row.dueInMs ?? 0;
  const isRecorded = dueInMs > 0 && nextDelayMs !== null;
  return isRecorded ? { kind: 'failed', waitMs: dueInMs } : { kind: 'postponed', waitMs: Math.max(dueInMs, 1_000) };
}

/** @returns null when the delivery is not open to this round; `number` null when no place is free. */
async function admit(pool: Pool, input: AttemptInput): Promise<AdmittedRow | null> {
  const { organizationId, webhookId, eventId, round, nextDelayMs, onlyAsFirst = false } = input;
  const values = [organizationId, webhookId, eventId, round, nextDelayMs === null, onlyAsFirst];
  for (let tries = 1; ; tries += 1) {
    try {
      const { rows } = await pool.query<AdmittedRow>({ name: 'admitAttempt', text: admitAttemptSql, values });
      return rows[0] ?? null;
    } catch (error) {
      const collided = error instanceof pg.DatabaseError && error.code === uniqueViolation;
      if (!collided) throw error;
      if (tries === 5) return noPlace;
    }
  }
}

/** What is answered when the last free place was taken by others again and again. */
const noPlace: AdmittedRow = {
  ...{ number: null, isBegun: false, queue: null },
  ...{ url: '', type: '', body: '', sequence: null, secrets: [] },
};

function resultOf(outcome: PostOutcome, { nextDelayMs, ownFaults = 0 }: AttemptInput): AttemptResult {
  if (outcome.kind === 'delivered') return { kind: 'delivered' };
  if (outcome.ownFault)
    return { kind: 'postponed', waitMs: waitAfterOwnFaultMs(ownFaults, Math.random()), because: 'ownFault' };
  if (nextDelayMs === null) return { kind: 'exhausted' };
  const floorMs = (outcome.retryAfterSeconds ?? 0) * 1000;
  return { kind: 'failed', waitMs: Math.max(nextDelayMs, floorMs) };
}

/**
 * The answer is here and must not be forgotten because the database is away: tried until `giveUpAt` (by `performance.now`), which leaves a failover nearly all of the attempt's time. Then the
 * attempt is closed as lost, and one that was accepted is posted again.
 */
async function retriedWhileAway(write: () => Promise<unknown>, giveUpAt: number): Promise<void> {
  for (;;) {
    try {
      await write();
      return;
    } catch (error) {
      if (performance.now() > giveUpAt) throw error;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }
}
