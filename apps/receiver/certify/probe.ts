import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { describeProblem, post, type Target } from '../http.ts';
import type { ReadState, State, StateQuestion } from './state.ts';

/** What a receiver did that it should not do; the message is the sentence of the report. */
export class Finding extends Error {}

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
  /** How long the receiver may take. */
  deadlineMs: number;
  /** Null: only answers are judged. */
  readState: ReadState | null;
  /** Called with each event before it is sent. */
  onSend?: (event: ProbeEvent) => void;
}

/** How long a receiver that answers before it applies may take to apply what it accepted. */
const applyWithinMs = 10_000;

/** Sends events to a receiver, and reads what became of them. */
export class Probe {
  readonly answers: ReceiverResponse[] = [];
  readonly options: ProbeOptions;
  #sequence = 0;
  #lastMs = Date.now() - 60_000;

  constructor(options: ProbeOptions) {
    this.options = options;
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
      Connection: 'close',
      ...sending.headers,
    };
    onSend?.(event);
    const from = performance.now();
    const received: ReceiverResponse = { status: null, problem: null, durationMs: 0 };
    const timeoutMs = deadlineMs;
    try {
      const list = Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
      const response = await post(target, { headers: list, body, timeoutMs });
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
    if (!isAccepted(received)) throw new Finding(`It answered ${describeResponse(received)} to ${what}.`);
  }

  /** @throws Finding unless the receiver rejects the event. */
  async reject(what: string, event: ProbeEvent, sending?: Sending): Promise<void> {
    const received = await this.send(event, sending);
    if (isAccepted(received)) throw new Finding(`It answered ${describeResponse(received)} to ${what}.`);
  }

  /**
   * Returns the state once everything that was accepted before is applied, or null when the receiver tells none.
   *
   * An event of a grant of its own goes last: a receiver with a queue has applied what came before it when it has
   * applied that one.
   *
   * @throws Finding when that one is not applied within 10 s.
   */
  async state(question: StateQuestion): Promise<State | null> {
    const { readState } = this.options;
    if (readState === null) return null;
    const marker = this.started();
    const grant = String(marker.data.grantId);
    await this.accept('an event', marker);
    const until = performance.now() + applyWithinMs;
    for (;;) {
      const state = await readState({ event: marker.id, grant });
      if (state.grants === undefined && state.events === undefined) break;
      if (state.grants?.[grant] === 'active' || (state.grants === undefined && state.events?.[marker.id])) break;
      if (performance.now() > until)
        throw new Finding('It accepted a client.started, and does not list its grant as active after 10 s.');
      await pause(100);
    }
    return readState(question);
  }
}

export const isAccepted = ({ status }: ReceiverResponse): boolean => status !== null && status >= 200 && status <= 299;

export const describeResponse = ({ status, problem }: ReceiverResponse): string =>
  status === null ? `nothing (${problem})` : String(status);
