import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Connection } from '@temporalio/client';
import { expect, it, onTestFinished } from 'vitest';
import { allowSockets } from '#test/socket-guard.ts';
import { connectionOptions } from '#workflows/connection.ts';

it('a client that finds no server tries again in seconds, however long the server is unavailable', async () => {
  const tries: number[] = [];
  const server = createServer((socket) => {
    tries.push(performance.now());
    socket.destroy();
    if (tries.length === expected) server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  // gRPC may try once more after it was closed, beside the next test of this process.
  allowSockets('Temporal', `http://${address}`);
  const connection = Connection.lazy({
    ...connectionOptions({ address, namespace: 'n', tls: null, apiKey: null }),
    connectTimeout: '2m',
  });
  onTestFinished(() => connection.close());
  connection.ensureConnected().catch(() => {});

  await once(server, 'close');

  const gaps = tries.slice(1).map((time, nth) => time - (tries[nth] ?? 0));
  // By default each wait is 1.6 times the one before: 17 s at the end, after 4 s here.
  expect((gaps.at(-1) ?? 0) / (gaps.at(3) ?? 0)).toBeLessThan(2.5);
}, 120_000);

const expected = 8;
