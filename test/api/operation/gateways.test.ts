/**
 * A gateway that closes idle connections earlier than the pod never sends on a closed connection.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { constants } from '#test/constants.ts';
import { setup } from '#test/setup.ts';

const connections = 20;

/** Sends a request and returns the response's first line; null when the connection ended instead. */
async function ask(socket: Socket, path: string, key: string): Promise<string | null> {
  if (socket.destroyed) return null;
  const answered = new Promise<Buffer | null>((resolve) => {
    socket.once('data', resolve).once('close', () => resolve(null));
  });
  socket.write(`GET ${path} HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  const [first = null] = (await answered)?.toString('latin1').split('\r\n') ?? [];
  return first;
}

it('a gateway that keeps idle connections for less time than the pod meets no closed connection', async () => {
  const { api, make } = await setup({ TRUSTED_PROXIES: '127.0.0.1', [constants]: { keepAliveSeconds: 3 } });
  const { key, orgId } = await make.apiKey();
  const gatewayIdleMs = 2_000;
  const received: (string | null)[] = [];

  /** Sends each request shortly before the gateway would close the connection. */
  async function keepConnection(): Promise<void> {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {});
    await once(socket, 'connect');
    // Nothing was sent before the first request. The second request follows a rejection.
    for (const path of ['/nowhere', `/v1/orgs/${orgId}`, '/livez']) {
      const idleSinceMs = performance.now();
      await wait(gatewayIdleMs * 0.75);
      // On a busy machine the timer may be late, and the gateway has closed the connection by then.
      if (performance.now() - idleSinceMs >= gatewayIdleMs) return;
      received.push(await ask(socket, path, key));
    }
  }
  await Promise.all(Array.from({ length: connections }, keepConnection));

  expect(new Set(received)).toEqual(new Set(['HTTP/1.1 404 Not Found', 'HTTP/1.1 200 OK']));
});
