/** Requirements for the receiver of every language, tested on the example programs. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postOnce } from '#delivery/post/post.ts';
import { createResolve } from '#delivery/post/resolve.ts';
import { tryBothSignatures } from '#delivery/send-test.ts';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { endChild } from '#test/end-child.ts';
import { testAllowList } from '#test/secrets.ts';
import { type Captured, type Case, capture, captureCases } from './captured.ts';
import { catchRotation } from './rotation.ts';

/** A program with its arguments. */
export type Command = readonly [file: string, ...args: string[]];

/** A language's receiver, ready to run. */
export interface ReceiverProgram {
  /** Reads captured deliveries and prints for each library whether it accepts them. */
  check: Command;
  /** Listens on PORT for deliveries signed with WEBHOOK_SECRET. */
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
    target: { url, secrets: [''], nowMs: Date.now() },
    post: (request) => postOnce({ ...request, allow: testAllowList, resolve }),
    sign: ({ eventId: id }, { body, timestampSeconds }) =>
      signatureHeaders({ id, body, secrets: [secret], timestampSeconds }),
    onInternalError: (error) => {
      throw error;
    },
  });
}
