/** Requirements for the receiver of every language, tested on the example programs. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postOnce } from '#delivery/post/post.ts';
import { tryBothSignatures } from '#delivery/send-test.ts';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { createResolve } from '#runtime/egress/resolve.ts';
import { endChild } from '#test/end-child.ts';
import { testAllowList } from '#test/secrets.ts';
import { certify } from '../../apps/receiver/certify/certify.ts';
import { type Captured, type Case, capture, captureCases } from './captured.ts';
import { catchRotation } from './rotation.ts';

/** A program with its arguments. */
export type Command = readonly [file: string, ...args: string[]];

/** A language's receiver, ready to run. */
export interface ReceiverProgram {
  /** Reads captured deliveries and prints for each library whether it accepts them. */
  check: Command;
  /** Listens on PORT for deliveries signed with the secrets of WEBHOOK_SECRET. */
  serve: Command;
  /** Removes what was built only for this run. */
  dispose?(): void;
}

/**
 * One language's example: the libraries with which its `check` must verify, and how to prepare it
 * (milliseconds, first time).
 */
export interface Example {
  language: string;
  libraries: readonly string[];
  prepare: () => Promise<ReceiverProgram>;
  prepareTimeoutMs: number;
}

/** Declares the tests of one language's receiver. */
export function describeReceiver({ language, libraries, prepare, prepareTimeoutMs }: Example): void {
  describe(`the receiver in ${language}`, () => {
    let program: ReceiverProgram;
    beforeAll(async () => {
      program = await prepare();
    }, prepareTimeoutMs);
    afterAll(() => program?.dispose?.());

    it('verifies a worker’s posts with every library, before, during and after a rotation, and rejects forged ones', {
      timeout: 120_000,
    }, async () => {
      const cases = captureCases(await catchRotation());
      const { status, lines } = await check(
        program,
        cases.map(({ captured }) => captured),
      );
      expect(lines.map(getResult)).toEqual(cases.flatMap((each, index) => expectedLines(each, index + 1, libraries)));
      expect(status).toBe(1);
    });

    it('exits with status 0 when everything is accepted', async () => {
      const { status } = await check(program, [capture({ secret: generateSecret() })]);
      expect(status).toBe(0);
    });

    it.each([
      ['has quotes', `"${generateSecret()}"`, /WEBHOOK_SECRET has quotes: remove them/],
      ['has a byte order mark', `\ufeff${generateSecret()}`, /WEBHOOK_SECRET has a byte order mark/],
      ['is cut short', generateSecret().slice(0, -1), /WEBHOOK_SECRET contains what is not a secret/],
      ['is missing', '', /WEBHOOK_SECRET is missing/],
    ])('does not start with a secret that %s, and says so without the secret', async (_what, text, sentence) => {
      const { status, stderr } = await startWith(program, text);
      expect(status).toBeGreaterThan(0);
      expect(stderr).toMatch(sentence);
      expect(stderr).not.toContain(text.slice(8, 20) || 'whsec_A');
      expect(stderr.trim().split('\n')).toHaveLength(1);
    });

    describe('while it listens to several webhooks', () => {
      const [harbor, elm] = [
        { endpoint: randomUUID(), secret: generateSecret() },
        { endpoint: randomUUID(), secret: generateSecret() },
      ];
      const successor = generateSecret();
      let server: Awaited<ReturnType<typeof serve>>;
      beforeAll(async () => {
        const entries = [harbor, elm, { ...elm, secret: successor }];
        server = await serve(program, entries.map((each) => `${each.endpoint}=${each.secret}`).join(' '));
      });
      afterAll(() => server?.stop());

      it('verifies each with its own secrets, also with both of a rotation', async () => {
        const post = (endpoint: string, secret: string) =>
          server.post(capture({ secret, endpoint, id: randomUUID(), sequence: 1 }));
        expect(await post(harbor.endpoint, harbor.secret)).toBe(204);
        expect(await post(elm.endpoint, elm.secret)).toBe(204);
        expect(await post(elm.endpoint, successor)).toBe(204);
        expect(await post(elm.endpoint, harbor.secret)).toBe(400);
        expect(await post(randomUUID(), harbor.secret)).toBe(400);
      });

      /** Posts events in an order of arrival, and returns the ids of those that were applied. */
      async function applied(arrivals: readonly Partial<Parameters<typeof capture>[0]>[]): Promise<string[]> {
        const from = server.handled().length;
        for (const each of arrivals) expect(await server.post(capture({ ...harbor, ...each }))).toBe(204);
        const last = randomUUID();
        expect(await server.post(capture({ ...harbor, id: last }))).toBe(204);
        await expect.poll(() => server.handled().at(-1)).toBe(`client.started ${last}`);
        return server
          .handled()
          .slice(from, -1)
          .map((line) => line.split(' ')[1] ?? '');
      }

      it('does not apply the start of a grant after its end', async () => {
        const data = { grantId: randomUUID() };
        const [started, ended, other] = [randomUUID(), randomUUID(), randomUUID()];
        const arrivals = [
          { id: ended, type: 'client.ended', createdAt: '2026-01-01T00:00:00.002Z', sequence: 2, data },
          { id: started, createdAt: '2026-01-01T00:00:00.001Z', sequence: 1, data },
          { id: other, createdAt: '2026-01-01T00:00:00.000Z', sequence: 3 },
        ];
        expect(await applied(arrivals)).toEqual([ended, other]);
      });

      it('applies the end of a seat after the next seat of its grant was given and the grant ended', async () => {
        const grantId = randomUUID();
        const [first, second] = [randomUUID(), randomUUID()];
        const ids = Array.from({ length: 4 }, () => randomUUID());
        const arrivals = [
          { type: 'client.ended', createdAt: '2026-01-01T00:00:00.005Z', data: { grantId } },
          { type: 'seat.given', createdAt: '2026-01-01T00:00:00.003Z', data: { grantId, seatId: second } },
          { type: 'seat.ended', createdAt: '2026-01-01T00:00:00.002Z', data: { grantId, seatId: first } },
          { type: 'seat.given', createdAt: '2026-01-01T00:00:00.001Z', data: { grantId, seatId: first } },
        ].map((each, index) => ({ ...each, id: ids[index] ?? '', sequence: 4 - index }));
        expect(await applied(arrivals)).toEqual(ids.slice(0, 3));
      });

      it('decides within a millisecond by the sequence as a number, and between two webhooks by the ids', async () => {
        const [tenth, ninth, eleventh] = [randomUUID(), randomUUID(), randomUUID()];
        const data = { grantId: randomUUID() };
        const arrivals = [
          { id: tenth, sequence: 10, data },
          { id: ninth, sequence: 9, data },
          { id: eleventh, sequence: 11, data },
        ];
        expect(await applied(arrivals)).toEqual([tenth, eleventh]);

        const ids = ['1', '2', '3'].map((first) => `${first}${randomUUID().slice(1)}`);
        const [earliest = '', middle = '', latest = ''] = ids;
        const ofTwo = { data: { grantId: randomUUID() } };
        const between = [
          { id: middle, sequence: 5, ...ofTwo },
          { id: latest, sequence: 2, ...elm, ...ofTwo },
          { id: earliest, sequence: 9, ...ofTwo },
        ];
        expect(await applied(between)).toEqual([middle, latest]);
      });
    });

    describe('while it listens', () => {
      const secret = generateSecret();
      let server: Awaited<ReturnType<typeof serve>>;
      beforeAll(async () => {
        server = await serve(program, secret);
      });
      afterAll(() => server?.stop());

      it('handles an event once, answers its repetition with success, and rejects a forged one', async () => {
        const [first, next] = [randomUUID(), randomUUID()];
        const genuine = capture({ secret, id: first });
        expect(await server.post(capture({ secret: generateSecret() }))).toBe(400);
        expect([await server.post(genuine), await server.post(genuine)]).toEqual([204, 204]);
        expect(await server.post(capture({ secret, id: next }))).toBe(204);
        await expect.poll(() => server.handled().at(-1)).toBe(`client.started ${next}`);
        expect(server.handled()).toEqual([`client.started ${first}`, `client.started ${next}`]);
      });

      it('accepts a correctly signed test event without acting on it, and rejects a badly signed one', async () => {
        const { result, good, bad } = await checkSignatures(server.url, secret);
        expect({ result, bad }).toMatchObject({ result: 'verified', bad: { status: 400 } });
        expect(good).toMatchObject({ delivered: true, status: 204 });
        // It reports events in order: after a later event, it reports no earlier one.
        const later = randomUUID();
        expect(await server.post(capture({ secret, id: later }))).toBe(204);
        await expect.poll(() => server.handled().at(-1)).toBe(`client.started ${later}`);
        expect(server.handled().filter((line) => line.includes(good.eventId))).toEqual([]);
      });

      it('passes certify', { timeout: 120_000 }, async () => {
        const countHandled = (event: string) => server.handled().filter((line) => line.endsWith(` ${event}`)).length;
        const { scenarios } = await certify({
          target: { url: server.url, ca: null },
          secrets: [secret],
          organizationId: randomUUID(),
          endpoint: randomUUID(),
          deadlineMs: 10_000,
          readState: async ({ event }) => ({ events: event === undefined ? {} : { [event]: countHandled(event) } }),
        });
        const others = scenarios.filter(({ result }) => result !== 'passed').map(({ name, found }) => [name, found]);
        // Which states its clients and seats have, it does not tell.
        expect(others).toEqual([
          ['keeps-ended-client-ended', '--state-url reports no grants.'],
          ['orders-by-created-at', '--state-url reports no grants.'],
          ['orders-within-millisecond', '--state-url reports no grants.'],
          ['keeps-seats-apart', '--state-url reports no seats.'],
          ['keeps-clients-and-seats-apart', '--state-url reports no grants.'],
        ]);
      });

      it('rejects another method, and a body above its limit', async () => {
        expect((await fetch(server.url)).ok).toBe(false);
        const large = { headers: {}, body: Buffer.alloc(300_000).toString('base64'), secret };
        expect([413, 'connection closed']).toContain(await server.post(large).catch(() => 'connection closed'));
      });
    });
  });
}

/** A line of `check` without the library's reason: `1 svix accepted`. */
const getResult = (line: string) => line.replace(/: .*/, '');

function expectedLines(each: Case, number: number, libraries: readonly string[]): string[] {
  return libraries.map((name) => `${number} ${name} ${each.isAcceptedBy(name) ? 'accepted' : 'rejected'}`);
}

async function check({ check: [file, ...args] }: ReceiverProgram, deliveries: readonly Captured[]) {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(deliveries.map((each) => `${JSON.stringify(each)}\n`).join(''));
  const [output, [status]] = await Promise.all([readText(child.stdout), once(child, 'exit')]);
  return { status: status as number | null, lines: output.trim().split('\n') };
}

/** Starts a receiver that must end by itself. */
async function startWith({ serve: [file, ...args] }: ReceiverProgram, secret: string) {
  const env = { ...process.env, WEBHOOK_SECRET: secret, PORT: '0' };
  const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
  const [stderr, [status]] = await Promise.all([readText(child.stderr), once(child, 'exit')]);
  return { stderr, status: status as number | null };
}

async function serve({ serve: [file, ...args] }: ReceiverProgram, secret: string) {
  const env = { ...process.env, WEBHOOK_SECRET: secret, PORT: '0' };
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'], env });
  const lines: string[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (status) => reject(new Error(`the receiver ended with status ${status} before it listened`)));
    createInterface(child.stdout).on('line', (line) => {
      const listening = /^listening on (http:\S+)$/.exec(line);
      if (listening?.[1]) resolve(listening[1]);
      else lines.push(line);
    });
  });
  return { url, handled: () => lines, stop: () => endChild(child), post: (captured: Captured) => post(url, captured) };
}

async function post(url: string, { headers, body }: Captured): Promise<number> {
  const request = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' } };
  return (await fetch(url, { ...request, body: Buffer.from(body, 'base64') })).status;
}

/** Sends the two posts of `orgctl webhook verify` with the same code, without the installation. */
function checkSignatures(url: string, secret: string) {
  const resolve = createResolve();
  return tryBothSignatures({
    input: { organizationId: randomUUID(), webhookId: randomUUID(), eventType: 'client.started' },
    target: { url, secrets: [''], headers: null, nowMs: Date.now() },
    post: (request) => postOnce({ ...request, allow: testAllowList, resolve }),
    sign: ({ eventId: id }, { body, timestampSeconds }) =>
      signatureHeaders({ id, body, secrets: [secret], timestampSeconds }),
    unsealCustomHeaders: () => ({}),
    onInternalError: (error) => {
      throw error;
    },
  });
}
