import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '#domain/db/connect.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';

/** PostgreSQL's SSLRequest: its length, then a code that is not a version of the protocol. */
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/** Returns the first bytes that a server receives from a pool of this URL. */
async function firstBytes(parameters: string): Promise<Buffer> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const received = new Promise<Buffer>((resolve) => {
    server.on('connection', (socket) =>
      socket.once('data', (bytes: Buffer) => {
        resolve(bytes);
        socket.destroy();
      }),
    );
  });
  const { port } = server.address() as AddressInfo;
  const url = `postgresql://someone:secret@127.0.0.1:${port}/base${parameters}`;
  const database = await openDatabase({ server: parsePostgresUrl(url), applicationName: 'test', poolMax: 1 });
  onTestFinished(() => database.close());
  await database.pool.query('select 1').catch(() => {});
  return received;
}

// Regression: MikroORM drops the parameters of a URL, and the password was sent in plain text.
it('a connection whose URL has sslmode requests TLS before it sends anything else', async () => {
  expect(await firstBytes('?sslmode=verify-full')).toEqual(sslRequest);
});

it('a connection whose URL has no sslmode requests no TLS', async () => {
  expect(await firstBytes('')).not.toEqual(sslRequest);
});
