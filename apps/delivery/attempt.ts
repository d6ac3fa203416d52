import { randomUUIDv7 } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { ApplicationFailure } from '@temporalio/common';
import type { Pool } from 'pg';
import { isStatementError, isTransient } from '#domain/db/driver/errors.ts';
import type { AttemptOutcome } from '#domain/webhooks/causes.ts';
import type {
  AttemptInput,
  DeliveryActivities,
  DeliveryId,
  DeliveryRun,
  NextStep,
} from '#workflows/deliver-event/types.ts';
import { type KeptBody, nothingSent, type PostResult } from './post/result.ts';
import { waitAfterFailureMs, waitAfterInternalErrorMs } from './schedule.ts';
import type { Sender, SignedRequest } from './sender.ts';
import { type AdmissionRow, type AdmittedRow, admitAttemptSql } from './sql/admit.ts';
import { type OutcomeRow, outcomeValues, recordOutcomeSql, recordResponseSql } from './sql/outcome.ts';
import { askAgainMs, postUntilMs, recordUntilMs, slotMs } from './times.ts';

/** What logs, metrics and traces report of an attempt: ids, its outcome and times. */
export interface AttemptLine extends DeliveryRun {
  number: number;
  type: string;
  outcome: AttemptOutcome | 'exhausted';
  status: number | null;
  cause: string;
  /** Unix time in ms by PostgreSQL's clock. */
  startedAtMs: number;
  timingsMs: PostResult['timingsMs'];
}

export interface AttemptOptions extends Sender {
  pool: Pool;
  /** The waits of the schedule; it has one attempt more. */
  delaysMs: readonly number[];
  /** Called when an activity started, or ended with the next step; null: it failed. */
  onStarted: (input: AttemptInput) => void;
  onEnded: (input: AttemptInput, next: NextStep | null, line: AttemptLine | null) => void;
}

/** Creates the activity of deliveries, over the connections of the worker that runs it. */
export function createAttempts(options: AttemptOptions): DeliveryActivities {
  const { pool, delaysMs, post, sign, unsealCustomHeaders, onStarted, onEnded, onInternalError } = options;

  async function attempt(input: AttemptInput): Promise<{ next: NextStep; line: AttemptLine | null }> {
    const startedAt = performance.now();
    const id = randomUUIDv7();
    const admission = await admit(pool, [...listIds(input), input.run, id, delaysMs, slotMs / 1_000], startedAt);
    if (admission.decision !== 'admitted') return { next: nextWithoutAttempt(admission, input), line: null };
    const lookUpMs = startedAt + postUntilMs - performance.now();
    const request = prepare(input, admission, lookUpMs);
    const result = request === null ? nothingSent : await post(request);
    const { outcome, status, cause, timingsMs } = result;
    const isInternalError = outcome === 'internal_error';
    const waitMs = isInternalError
      ? waitAfterInternalErrorMs('internal', input.internalErrors, Math.random())
      : waitAfterFailureMs(delaysMs, admission.failures, Math.random());
    const attempted = { id, admission, headers: request && listHeaders(request), result, waitMs };
    const giveUpAt = startedAt + recordUntilMs;
    const state = await record(input, attempted, giveUpAt);
    if (result.rest !== null) await recordRest(input, id, result.rest, giveUpAt);
    const { organizationId, webhookId, eventId, run, type } = input;
    const { number, startedAtMs } = admission;
    const line = { organizationId, webhookId, eventId, run, type, number, startedAtMs, status, cause, timingsMs };
    return {
      next: state === 'running' ? { kind: 'wait', waitMs, isInternalError } : { kind: 'end' },
      line: { ...line, outcome: state === 'exhausted' && outcome === 'failed' ? 'exhausted' : outcome },
    };
  }

  /** Returns the signed request, or null when it could not be prepared, which is reported. */
  function prepare(input: AttemptInput, admitted: AdmittedRow, lookUpMs: number): SignedRequest | null {
    const { number, url, sequence, startedAtMs } = admitted;
    try {
      if (lookUpMs < 0) throw new Error(`admitting the attempt took more than ${postUntilMs} ms`);
      if (admitted.body === null) throw new Error("the event's row is missing");
      if (admitted.secrets === null) throw new Error('the webhook has no valid secret');
      const body = Buffer.from(admitted.body);
      const sealed = admitted.secrets.map((secret) => Buffer.from(secret.sealed, 'base64'));
      const headers: Record<string, string> = {
        ...sign(input, { sealed, body, timestampSeconds: Math.floor(startedAtMs / 1000) }),
        'webhook-attempt': String(number),
        ...(sequence === null ? {} : { 'webhook-sequence': sequence }),
      };
      const customHeaders = unsealCustomHeaders(input, admitted.headers);
      return { webhookId: input.webhookId, url, headers, customHeaders, body, nowMs: startedAtMs, lookUpMs };
    } catch (error) {
      onInternalError(error, input, 'internal_error');
      return null;
    }
  }

  /** Records the outcome. Null: PostgreSQL does not have the delivery any more, which is reported. */
  async function record(
    input: AttemptInput,
    attempted: { id: string; admission: AdmittedRow; headers: object | null; result: PostResult; waitMs: number },
    giveUpAt: number,
  ): Promise<OutcomeRow['state'] | null> {
    const { id, admission, headers, result, waitMs } = attempted;
    const { timingsMs, body, cause } = result;
    const values = outcomeValues({
      ...input,
      ...admission,
      ...result,
      attemptId: id,
      waitMs,
      signedWith: admission.secrets?.map((secret) => secret.id) ?? [],
      timings: JSON.stringify(timingsMs),
      keptBytes: body.length,
      response: body,
      headers: headers && JSON.stringify(headers),
      tookMs: timingsMs.total - (timingsMs.dns ?? 0), // the service's name servers may be slow
    });
    const query = { name: 'recordOutcome', text: recordOutcomeSql, values };
    const { rows } = await retried(() => pool.query<OutcomeRow>(query), giveUpAt);
    if (rows[0] !== undefined) return rows[0].state;
    const what = `attempt ${admission.number} ended (${cause}), but its delivery is not in the database any more`;
    onInternalError(new Error(what), input, 'delivery_missing');
    return null;
  }

  /** Records what is kept of a response that arrives after the outcome, which is safe by now. */
  async function recordRest(input: AttemptInput, id: string, rest: Promise<KeptBody>, giveUpAt: number): Promise<void> {
    const { body, encoding } = await rest;
    if (body.length === 0 && encoding === null) return;
    const values = [...listIds(input), id, body.length, body, encoding];
    const query = { name: 'recordResponse', text: recordResponseSql, values };
    await retried(() => pool.query(query), giveUpAt).catch((cause: unknown) =>
      onInternalError(cause, input, 'response_lost'),
    );
  }

  return {
    async attemptDelivery(input) {
      onStarted(input);
      try {
        const { next, line } = await attempt(input);
        onEnded(input, next, line);
        return next;
      } catch (cause) {
        onEnded(input, null, null);
        onInternalError(cause, input, 'activity_failed');
        throw createInternalFailure();
      }
    },
  };
}

/**
 * Returns the failure of an activity whose error was reported. Temporal stores what a failed
 * activity reports, and an error's text could quote a value.
 */
export function createInternalFailure(): ApplicationFailure {
  const failure = ApplicationFailure.nonRetryable('internal error; see the worker log');
  failure.stack = '';
  return failure;
}

/** Returns the headers of a request as they are recorded: the values of custom ones are secret. */
const listHeaders = ({ headers, customHeaders }: SignedRequest): Record<string, string | null> => ({
  ...headers,
  ...Object.fromEntries(Object.keys(customHeaders).map((name) => [name, null])),
});

const listIds = ({ organizationId, webhookId, eventId }: DeliveryId): string[] => [organizationId, webhookId, eventId];

type Admission = AdmissionRow | { decision: 'unavailable' };

/** Returns the next step of a run that may make no attempt now. */
function nextWithoutAttempt(admission: Exclude<Admission, AdmittedRow>, { internalErrors }: AttemptInput): NextStep {
  if (admission.decision === 'end') return { kind: 'end' };
  if (admission.decision === 'unavailable') {
    const waitMs = waitAfterInternalErrorMs('unavailable', internalErrors, Math.random());
    return { kind: 'wait', waitMs, isInternalError: true };
  }
  const waitMs = admission.decision === 'wait' ? Math.max(1, Math.ceil(admission.waitMs)) : 1_000;
  return { kind: 'wait', waitMs, isInternalError: false };
}

/**
 * Asks for an attempt, again while another connection assigns slots of the organization or has
 * locked the delivery, and after a lost connection: the attempt's id finds an admission whose reply
 * was lost. `unavailable`: PostgreSQL did not answer in time.
 */
async function admit(pool: Pool, values: unknown[], startedAt: number): Promise<Admission> {
  const giveUpAt = startedAt + postUntilMs;
  const ask = () => pool.query<AdmissionRow>({ name: 'admitAttempt', text: admitAttemptSql, values });
  for (;;) {
    try {
      const { rows } = await retried(ask, giveUpAt);
      const [row] = rows;
      if (row === undefined) return { decision: 'end' };
      if (row.decision !== 'lock_busy' || performance.now() > giveUpAt) return row;
    } catch (error) {
      if (isStatementError(error)) throw error;
      return { decision: 'unavailable' };
    }
    await pause(askAgainMs);
  }
}

/** Returns whether a connection failed or was rejected, or PostgreSQL ended the statement because of others. */
const mayRepeat = (error: unknown): boolean => !isStatementError(error) || isTransient(error);

/** The pause before a statement is repeated. */
const repeatAfterMs = 250;

/** Repeats a statement that may be repeated, at the latest at `giveUpAt` (`performance.now()`). */
async function retried<T>(send: () => Promise<T>, giveUpAt: number): Promise<T> {
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!mayRepeat(error) || performance.now() + repeatAfterMs > giveUpAt) throw error;
      await pause(repeatAfterMs);
    }
  }
}
