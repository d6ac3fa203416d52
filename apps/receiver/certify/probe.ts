import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { describeProblem, request, type Target } from '../http.ts';
import { describeRead, type ReadState, type State, type StateQuestion } from './state.ts';

/** What a receiver did that it should not do; the message is the sentence of the report. */
export class Finding extends Error {
  /** What to change instead of the fix of the scenario, or null for that one. */
  readonly fix: string | null;

  constructor(message: string, fix: string | null = null) {
    super(message);
    this.fix = fix;
  }
}

/** Nothing shows what a receiver did; the message is the sentence of the report. */
export class NotJudged extends Error {}

/** An event with any members: also of types and with members that do not exist yet. */
export interface ProbeEvent {
  id: string;
  type: string;
  createdAt: string;
  data: Record<string, unknown>;
  [member: string]: unknown;
}

/** How a delivery differs from a usual one. */
export interface Sending {
  /** Those that sign, newest first. */
  secrets?: readonly string[];
  /** How long ago it was signed; negative: it is signed for a later time. */
  ageSeconds?: number;
  /** The number within the webhook; the next one when it is absent, and none when it is null. */
  sequence?: number | null;
  /** The event as text; its compact JSON when it is absent. */
  text?: string;
  /** Replaces headers; undefined leaves one out. */
  headers?: Record<string, string | undefined>;
  /** Replaces the body after it was signed. */
  body?: string;
}

/** A receiver's response; `status` is null when there was none, and `problem` says why. */
export interface ReceiverResponse {
  status: number | null;
  problem: string | null;
  durationMs: number;
}

export interface ProbeOptions {
  target: Target;
  /** Those that the receiver has. */
  secrets: readonly string[];
  organizationId: string;
  /** The webhook's id, as in `webhook-endpoint`. */
  endpoint: string;
  /** How long the receiver may take to answer, and then to apply what it accepted. */
  deadlineMs: number;
  /** Null: only responses are judged. */
  readState: ReadState | null;
  /** Called with each event before it is sent. */
  onSend?: (event: ProbeEvent) => void;
}

/** Sends events to a receiver, and reads what became of them. */
export class Probe {
  readonly answers: ReceiverResponse[] = [];
  readonly options: ProbeOptions;
  #sequence = 0;
  /** Why no state is read; null: it is. */
  #noState: string | null;
  #hasReported = false;
  #lastMs = Date.now() - 60_000;

  constructor(options: ProbeOptions) {
    this.options = options;
    this.#noState = options.readState === null ? 'The responses do not show it: give --state-url.' : null;
  }

  /** Returns an event that is a millisecond later than the one before. */
  event(type: string, data: Record<string, unknown>, members: Record<string, unknown> = {}): ProbeEvent {
    this.#lastMs += 1;
    const organization = { id: this.options.organizationId };
    return {
      id: randomUUIDv7(),
      type,
      createdAt: new Date(this.#lastMs).toISOString(),
      organization,
      data,
      ...members,
    };
  }

  started(grantId: string = randomUUID(), members?: Record<string, unknown>): ProbeEvent {
    return this.event('client.started', { grantId, kind: 'attorney' }, members);
  }

  ended(grantId: string): ProbeEvent {
    return this.event('client.ended', { grantId, kind: 'attorney', reason: 'ended' });
  }

  nextSequence(): number {
    this.#sequence += 1;
    return this.#sequence;
  }

  async send(event: ProbeEvent, sending: Sending = {}): Promise<ReceiverResponse> {
    const { target, deadlineMs, endpoint, onSend } = this.options;
    const { secrets = this.options.secrets.slice(0, 1), ageSeconds = 0, sequence = this.nextSequence() } = sending;
    const signed = sending.text ?? JSON.stringify(event);
    const timestampSeconds = Math.floor(Date.now() / 1_000) - ageSeconds;
    const body = Buffer.from(sending.body ?? signed);
    const headers: Record<string, string | undefined> = {
      ...signatureHeaders({ id: event.id, timestampSeconds, body: signed, secrets }),
      'webhook-endpoint': endpoint,
      'webhook-attempt': '1',
      'webhook-sequence': sequence === null ? undefined : String(sequence),
      'Content-Type': 'application/json',
      Accept: '*/*',
      'User-Agent': 'org-api-webhooks/1.0',
      'Content-Length': String(body.length),
      ...sending.headers,
    };
    onSend?.(event);
    const from = performance.now();
    const received: ReceiverResponse = { status: null, problem: null, durationMs: 0 };
    const timeoutMs = deadlineMs;
    try {
      const list = Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
      const response = await request(target, { headers: list, body, timeoutMs });
      received.status = response.statusCode ?? null;
      response.on('error', () => {}).resume();
    } catch (error) {
      received.problem = describeProblem(error, target, timeoutMs);
    }
    received.durationMs = Math.round(performance.now() - from);
    this.answers.push(received);
    return received;
  }

  /** @throws Finding unless the receiver accepts the event. */
  async accept(what: string, event: ProbeEvent, sending?: Sending): Promise<void> {
    const received = await this.send(event, sending);
    if (!isAccepted(received)) throw rejection(received, what);
  }

  /** @throws Finding unless the receiver rejects the event. */
  async reject(what: string, event: ProbeEvent, sending?: Sending): Promise<void> {
    const received = await this.send(event, sending);
    if (isAccepted(received)) throw new Finding(`It answered ${describeResponse(received)} to ${what}.`);
  }

  /**
   * Returns the state once everything that was accepted before is applied.
   *
   * An event of a grant of its own goes last: a receiver with a queue has applied what came before it when it has
   * applied that one.
   *
   * @throws Finding when that one is not reported within the deadline. If none ever was, the state is not read again.
   * @throws NotJudged when no state is read.
   */
  async state(question: StateQuestion): Promise<State> {
    const { readState, deadlineMs } = this.options;
    if (readState === null || this.#noState !== null) throw new NotJudged(this.#noState ?? '');
    const marker = this.started();
    const grant = String(marker.data.grantId);
    await this.accept('an event', marker);
    const until = performance.now() + deadlineMs;
    for (;;) {
      const missing = describeMissing(await readState({ event: marker.id, grant }), { event: marker.id, grant });
      if (missing === null) {
        this.#hasReported = true;
        return readState(question);
      }
      if (performance.now() > until) {
        if (!this.#hasReported) this.#noState = '--state-url reports nothing that it accepted: see reports-state.';
        throw new Finding(`${missing}, ${deadlineMs / 1_000} s after it accepted that client.started.`, reportFix);
      }
      await pause(100);
    }
  }
}

/** What to change when the state does not show what was accepted. */
export const reportFix =
  'Report what is applied: a client that has started is "active", and its event 1. Check that --state-url is of this ' +
  'receiver, and that it applies what it accepts.';

/** Returns what a state does not report of a client.started that was applied, or null. */
function describeMissing(state: State, { event, grant }: { event: string; grant: string }): string | null {
  if (Object.keys(state).length === 0) return '--state-url reports no events, grants or seats';
  if (state.grants !== undefined && state.grants[grant] !== 'active') return describeRead(state, 'grants', grant);
  if (state.events !== undefined && !state.events[event]) return describeRead(state, 'events', event);
  return null;
}

/** Returns a member of a state. @throws NotJudged when the receiver does not report it. */
export function readMember<Member extends keyof State>(state: State, member: Member): NonNullable<State[Member]> {
  const found = state[member];
  if (found === undefined) throw new NotJudged(`--state-url reports no ${member}.`);
  return found;
}

export const isAccepted = ({ status }: ReceiverResponse): boolean => status !== null && status >= 200 && status <= 299;

export const describeResponse = ({ status, problem }: ReceiverResponse): string =>
  status === null ? `nothing (${problem})` : String(status);

/** Returns the finding of an event that was not accepted: an error of the receiver itself has a fix of its own. */
export function rejection(received: ReceiverResponse, what: string): Finding {
  const { status } = received;
  return new Finding(
    `It answered ${describeResponse(received)} to ${what}.`,
    status !== null && status >= 500
      ? 'Read the receiver’s log: a 5xx is an error of its own, such as a table that is missing or a connection that ' +
          'two threads share. If the log has none, log the error where you catch it.'
      : null,
  );
}
