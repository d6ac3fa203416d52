import type { Socket } from 'node:net';
import { expect, it, vi } from 'vitest';
import { createAttempts } from '#delivery/attempt.ts';
import { postOnce } from '#delivery/post/post.ts';
import { addressBlocks } from '#runtime/settings/types.ts';
import { type Hook, type Run, setupEngine } from '#test/delivery-engine.ts';
import { shareInstallation } from '#test/setup.ts';
import { startRawServer } from './post/raw-server.ts';

const engine = shareInstallation(setupEngine);

/** A claimed delivery to a receiver that sends its status line and then waits, and a worker. */
async function setup() {
  const answering: Socket[] = [];
  const server = await startRawServer((socket) => {
    answering.push(socket);
    socket.write('HTTP/1.1 200 OK\r\n');
  });
  const hook = await engine().webhook({ events: 1 });
  const errors: unknown[] = [];
  await engine().owner.query('update webhook set url = $2 where id = $1', [
    hook.webhookId,
    `http://127.0.0.1:${server.port}/`,
  ]);
  const [claim] = await engine().claim([hook]);
  const { attemptDelivery } = createAttempts({
    pool: engine().worker,
    delaysMs: [1_000],
    post: ({ url, headers, body }) =>
      postOnce({
        nowMs: Date.now(),
        url,
        headers,
        body,
        allow: addressBlocks.parse('127.0.0.0/8'),
        resolve: async () => ({ ok: false, cause: 'dns_failed' }),
      }),
    sign: () => ({}),
    unsealCustomHeaders: () => ({}),
    onStarted: () => {},
    onEnded: () => {},
    onInternalError: (error) => void errors.push(error),
  });
  const attempt = () =>
    attemptDelivery({ ...(claim as Run), type: 'seat.given', dueAtMs: Date.now(), internalErrors: 0 });
  return { server, hook, errors, attempt, answering };
}

const kept = async ({ webhookId }: Hook) =>
  (
    await engine().owner.query(
      'select kept_bytes, response_encoding, response from delivery_attempt where webhook_id = $1',
      [webhookId],
    )
  ).rows[0];

it('a delivery is settled with the status line, and a kill while the body arrives posts nothing again', async () => {
  const t = await setup();
  const first = t.attempt();
  await vi.waitFor(async () => expect(await engine().delivery(t.hook)).toMatchObject({ state: 'delivered' }), {
    timeout: 30_000,
  });
  expect(await engine().delivery(t.hook)).toMatchObject({ state: 'delivered', hasAttempt: null, attempts: 1 });
  expect(t.answering[0]?.closed).toBe(false); // the body is still awaited
  expect(await t.attempt()).toEqual({ kind: 'end' }); // another worker, after this one was killed
  expect(t.server.requests).toHaveLength(1);

  t.answering[0]?.write('content-encoding: br\r\n\r\nlate');
  expect(await first).toEqual({ kind: 'end' });
  expect(await kept(t.hook)).toEqual({ kept_bytes: 4, response_encoding: 'br', response: Buffer.from('late') });
  expect(t.errors).toEqual([]);
});
