import { writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import path from 'node:path';
import { TLSSocket } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { makeCertificate, type TestCertificate } from '#test/certificates.ts';
import { listenLocally } from '#test/listen-locally.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';

/** PostgreSQL's SSLRequest: its length, then a code that is not a version of the protocol. */
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/** Returns the first bytes that a server receives from a pool of this URL, which then fails. */
async function firstBytes(parameters: string): Promise<Buffer> {
  const received = Promise.withResolvers<Buffer>();
  await connectTo(parameters, (socket) =>
    socket.once('data', (bytes: Buffer) => {
      received.resolve(bytes);
      socket.destroy();
    }),
  );
  return received.promise;
}

/** Connects a pool of this URL to a server that does not finish a login. Returns the pool's error. */
async function connectTo(parameters: string, accept: (socket: Socket) => void): Promise<Error> {
  const port = await listenLocally(createServer(accept));
  const url = `postgresql://someone:secret@127.0.0.1:${port}/base${parameters}`;
  const database = await openDatabase({ server: parsePostgresUrl(url), applicationName: 'test', poolMax: 1 });
  onTestFinished(() => database.close());
  return database.pool.query('select 1').then(
    () => new Error('the query succeeded'),
    (error: Error) => error,
  );
}

// MikroORM drops the parameters of a URL; no password may be sent in plain text because of that.
it('a connection whose URL has sslmode requests TLS before it sends anything else', async () => {
  expect(await firstBytes('?sslmode=verify-full')).toEqual(sslRequest);
});

it('a connection whose URL has no sslmode requests no TLS', async () => {
  expect(await firstBytes('')).not.toEqual(sslRequest);
});

it('a connection by TLS sends nothing to a server whose certificate is of another authority, name or time', async () => {
  const folder = temporaryFolder();
  const authority = makeCertificate({ subject: 'Test Authority', isAuthority: true });
  const file = path.join(folder, 'ca.pem');
  writeFileSync(file, authority.cert);
  const of = (wanted: object) => makeCertificate({ subject: 'db', names: ['127.0.0.1'], issuer: authority, ...wanted });
  const verified = `?sslmode=verify-full&sslrootcert=${file}`;

  expect(await greet(verified, of({}))).toContain('someone');
  const wrong: [parameters: string, certificate: TestCertificate][] = [
    ['?sslmode=verify-full', of({})],
    [verified, makeCertificate({ subject: 'db', names: ['127.0.0.1'] })],
    [verified, of({ names: ['192.0.2.1'] })],
    [verified, of({ fromDay: -3, toDay: -2 })],
  ];
  for (const [parameters, certificate] of wrong) expect(await greet(parameters, certificate)).toBe('');
});

/** Returns what a server with this certificate receives behind TLS. */
async function greet(parameters: string, { cert, key }: TestCertificate): Promise<string> {
  let received = '';
  const error = await connectTo(parameters, (socket) =>
    socket.once('data', () => {
      socket.write('S');
      const secure = new TLSSocket(socket, { isServer: true, cert, key });
      secure.on('error', () => {});
      secure.on('data', (bytes) => {
        received += bytes;
        secure.destroy();
      });
    }),
  );
  expect(error.message).not.toBe('the query succeeded');
  return received;
}
