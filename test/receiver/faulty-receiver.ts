import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { listenLocally } from '#test/listen-locally.ts';
import { readBody } from '../../apps/receiver/body.ts';

/** Each fault, with the scenario of certify that has to find it. */
export const faults = {
  'verifies nothing': 'rejects-bad-signature',
  'skips verification without a signature': 'rejects-missing-signature',
  'verifies the headers only': 'rejects-changed-body',
  'accepts what is old': 'rejects-old-timestamp',
  'accepts what is of the future': 'rejects-future-timestamp',
  'verifies parsed JSON': 'verifies-bytes',
  'compares the first signature only': 'accepts-rotation',
  'compares the last signature only': 'accepts-rotation',
  'has one of two secrets': 'accepts-each-secret',
  'rejects repeats': 'accepts-repeat',
  'applies repeats': 'applies-repeat-once',
  'looks before it writes': 'applies-simultaneous-repeat-once',
  'remembers before it verifies': 'forged-event-blocks-nothing',
  'rejects late events': 'accepts-late-event',
  'keeps no order': 'keeps-ended-client-ended',
  'orders by sequence': 'orders-by-created-at',
  'ignores the sequence': 'orders-within-millisecond',
  'compares sequences as text': 'orders-within-millisecond',
  'orders per grant': 'keeps-seats-apart',
  'ends every seat at once': 'keeps-seats-apart',
  'orders clients with their seats': 'keeps-clients-and-seats-apart',
  'rejects unknown members': 'accepts-unknown-members',
  'rejects unknown kinds': 'accepts-unknown-values',
  'rejects unknown reasons': 'accepts-unknown-values',
  'rejects unknown types': 'accepts-unknown-type',
  'needs a grant': 'accepts-operational-event',
  'rejects test events': 'accepts-test-event',
  'applies test events': 'ignores-test-event',
  'reads 1 KiB': 'accepts-largest-request',
  'reads two signatures': 'accepts-largest-request',
  'accepts one at a time': 'accepts-parallel-events',
  'answers late': 'answers-in-time',
  redirects: 'answers-no-redirect',
  'answers 410 to an end': 'answers-no-410',
  'fails at a seat': 'keeps-seats-apart',
  'reports nothing that it applied': 'reports-state',
  'reports an empty object': 'reports-state',
} as const;

export type Fault = keyof typeof faults;

interface Event {
  id: string;
  type: string;
  createdAt: string;
  data: { grantId?: string; seatId?: string; kind?: string; reason?: string };
  test?: true;
}

/** The wait of `answers late`: longer than the deadline of its test. */
export const lateMs = 1_500;

/** A receiver that does all that it has to, except its fault, and that tells its state at `/state`. */
export async function startFaultyReceiver(secrets: readonly string[], fault: Fault | null): Promise<{ url: string }> {
  const receiver = new FaultyReceiver(fault === 'has one of two secrets' ? secrets.slice(0, 1) : secrets, fault);
  const server = createServer(async (request, response) => {
    if (request.method === 'GET') return void response.end(JSON.stringify(receiver.state()));
    const body = (await readBody(request)) ?? Buffer.alloc(0);
    const status = await receiver.receive(request.headers, body);
    response.writeHead(status, status === 301 ? { Location: '/elsewhere' } : {}).end();
  });
  return { url: `http://127.0.0.1:${await listenLocally(server)}` };
}

class FaultyReceiver {
  readonly #secrets: readonly string[];
  readonly #fault: Fault | null;
  readonly #seen = new Set<string>();
  readonly #positions = new Map<string, [createdAt: string, sequence: number | string]>();
  readonly #events: Record<string, number> = {};
  readonly #grants: Record<string, 'active' | 'ended'> = {};
  readonly #seats: Record<string, 'active' | 'ended'> = {};
  #busy = 0;

  constructor(secrets: readonly string[], fault: Fault | null) {
    this.#secrets = secrets;
    this.#fault = fault;
  }

  state() {
    if (this.#fault === 'reports an empty object') return {};
    if (this.#fault === 'reports nothing that it applied') return { events: {}, grants: {}, seats: {} };
    return { events: this.#events, grants: this.#grants, seats: this.#seats };
  }

  /** Returns the status to answer with. */
  async receive(headers: IncomingMessage['headers'], body: Buffer): Promise<number> {
    this.#busy += 1;
    try {
      if (this.#fault === 'accepts one at a time') {
        await pause(20);
        if (this.#busy > 1) return 429;
      }
      return await this.#respond(headers, body);
    } finally {
      this.#busy -= 1;
    }
  }

  async #respond(headers: IncomingMessage['headers'], body: Buffer): Promise<number> {
    const fault = this.#fault;
    if (fault === 'redirects') return 301;
    if (fault === 'reads 1 KiB' && body.length > 1_024) return 413;
    const id = String(headers['webhook-id']);
    const isForgedRepeat = fault === 'remembers before it verifies' && this.#seen.has(id);
    if (fault === 'remembers before it verifies') this.#seen.add(id);
    if (!this.#isGenuine(headers, body)) return 400;
    const event = JSON.parse(body.toString()) as Event;
    if (fault === 'answers late' && event.type === 'seat.ended') await pause(lateMs);
    const rejection = this.#findRejection(event);
    if (rejection !== null) return rejection;
    if (event.test && fault !== 'applies test events') return 204;
    const isRepeat = isForgedRepeat || (fault !== 'remembers before it verifies' && this.#seen.has(event.id));
    return this.#take(event, isRepeat, String(headers['webhook-sequence'] ?? '0'));
  }

  /** Remembers, orders and applies an event. Returns the status to answer with. */
  async #take(event: Event, isRepeat: boolean, sequence: string): Promise<number> {
    const fault = this.#fault;
    if (fault === 'looks before it writes') await pause(20);
    if (isRepeat && fault === 'rejects repeats') return 409;
    if (isRepeat && fault !== 'applies repeats') return 204;
    this.#seen.add(event.id);
    const isApplied = (this.#events[event.id] ?? 0) > 0;
    if (!isApplied && !this.#moveOn(event, sequence) && fault !== 'keeps no order')
      return fault === 'rejects late events' ? 409 : 204;
    this.#apply(event);
    return 204;
  }

  #isGenuine(headers: IncomingMessage['headers'], body: Buffer): boolean {
    const [id, time, given] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
      headers[name]?.toString(),
    );
    const fault = this.#fault;
    if (fault === 'verifies nothing') return true;
    if (given === undefined) return fault === 'skips verification without a signature';
    const ageSeconds = Date.now() / 1_000 - Number(time);
    if (ageSeconds > 300 && fault !== 'accepts what is old') return false;
    if (ageSeconds < -300 && fault !== 'accepts what is of the future') return false;
    let signatures = given.split(' ');
    if (fault === 'compares the first signature only') signatures = signatures.slice(0, 1);
    if (fault === 'compares the last signature only') signatures = signatures.slice(-1);
    if (fault === 'reads two signatures' && signatures.length > 2) return false;
    const signed = fault === 'verifies parsed JSON' ? JSON.stringify(JSON.parse(body.toString())) : body;
    // It trusts headers whose body it could not find: one that names another id.
    if (fault === 'verifies the headers only' && !body.includes(`"${id}"`)) return true;
    return this.#hasSigned(`${id}.${time}.`, signed, signatures);
  }

  #hasSigned(prefix: string, body: string | Buffer, signatures: readonly string[]): boolean {
    return this.#secrets.some((secret) => {
      const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
      return signatures.includes(`v1,${createHmac('sha256', key).update(prefix).update(body).digest('base64')}`);
    });
  }

  #findRejection(event: Event): number | null {
    const fault = this.#fault;
    if (fault === 'fails at a seat' && event.type.startsWith('seat.')) return 500;
    if (fault === 'answers 410 to an end' && event.type === 'client.ended') return 410;
    const known = ['id', 'type', 'createdAt', 'organization', 'data', 'test'];
    if (fault === 'rejects unknown members' && Object.keys(event).some((name) => !known.includes(name))) return 422;
    if (this.#rejectsValue(event)) return 422;
    if (fault === 'needs a grant' && event.data.grantId === undefined) return 422;
    const types = ['client.started', 'client.ended', 'seat.given', 'seat.ended', 'webhook.suspended', 'key.expiring'];
    if (fault === 'rejects unknown types' && !types.includes(event.type)) return 422;
    return event.test && fault === 'rejects test events' ? 404 : null;
  }

  #rejectsValue({ data: { kind = 'attorney', reason = 'ended' } }: Event): boolean {
    if (this.#fault === 'rejects unknown kinds') return !['attorney', 'neutral'].includes(kind);
    const reasons = ['ended', 'moved', 'ended_by_organization', 'access_ended', 'subscription_ended'];
    return this.#fault === 'rejects unknown reasons' && !reasons.includes(reason);
  }

  /** Whether the event is later than the last one of its subject. */
  #moveOn({ data: { grantId, seatId }, createdAt }: Event, sequenceText: string): boolean {
    const fault = this.#fault;
    const subject = fault === 'orders per grant' ? grantId : (seatId ?? grantId);
    if (subject === undefined) return true;
    const sequence = fault === 'compares sequences as text' ? sequenceText : Number(sequenceText);
    const last = this.#positions.get(subject);
    const isLater =
      last === undefined ||
      (fault === 'orders by sequence'
        ? sequence > last[1]
        : createdAt > last[0] || (createdAt === last[0] && (sequence > last[1] || fault === 'ignores the sequence')));
    if (isLater) this.#positions.set(subject, [createdAt, sequence]);
    if (fault === 'orders clients with their seats' && grantId !== undefined)
      this.#positions.set(grantId, [createdAt, sequence]);
    return isLater;
  }

  #apply({ id, type, data: { grantId = '', seatId = '' } }: Event): void {
    this.#events[id] = (this.#events[id] ?? 0) + 1;
    const state = type.endsWith('.ended') ? 'ended' : 'active';
    if (type.startsWith('client.')) this.#grants[grantId] = state;
    if (type.startsWith('seat.')) this.#seats[seatId] = state;
    if (this.#fault === 'ends every seat at once' && type === 'seat.ended')
      for (const seat of Object.keys(this.#seats)) this.#seats[seat] = 'ended';
  }
}
