/** Which errors of a database say that it is unavailable: API and console answer 503, and commands say so. */
import { connect, createServer, type Socket } from 'node:net';
import pg from 'pg';
import { expect, it, onTestFinished, vi } from 'vitest';
import { isServerUnavailable, isStatementError, isTransient } from '#domain/db/driver/errors.ts';
import { PrimaryConnection } from '#domain/db/driver/primary-connection.ts';
import { connectionOptions } from '#domain/db/server.ts';
import { openDatabase } from '#domain/open-database.ts';
import { describeFailure } from '#runtime/database-failure.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { listenLocally } from '#test/listen-locally.ts';
import { setupDatabase } from '#test/setup.ts';

const withCode = (code: string) => Object.assign(new Error('message'), { code });
const sqlStates = ['25006', '57P01', '57P02', '57P03', '53300', '53100', '08006', '58030'];
/** `EAI_AGAIN`: the name server does not respond. */
const ofSystem = 'ECONNREFUSED ECONNRESET ETIMEDOUT EHOSTUNREACH ENETUNREACH EPIPE ENOTFOUND EAI_AGAIN'.split(' ');
const otherCodes = ['57014', '23505', '42501', '22P02', '40P01', '28P01', 'ERR_INVALID_ARG_TYPE'];

it.each([...sqlStates, ...ofSystem])('%s says that the server is unavailable, also within another error', (code) => {
  expect(isServerUnavailable(withCode(code))).toBe(true);
  expect(isServerUnavailable(new Error('outer', { cause: withCode(code) }))).toBe(true);
});

it.each(otherCodes)('%s does not say that the server is unavailable', (code) => {
  expect(isServerUnavailable(withCode(code))).toBe(false);
});

it.each(['57014', '40P01', '55P03', '40001'])('%s says that other sessions ended the statement', (code) => {
  expect(isTransient(withCode(code))).toBe(true);
});

it.each(['23505', '42501', '22P02', '28P01', '57P01', ''])('%j does not say that other sessions ended it', (code) => {
  expect(isTransient(withCode(code))).toBe(false);
});

it('a rejected login or database is no error of a statement', () => {
  const answered = (code: string) => Object.assign(new pg.DatabaseError('message', 1, 'error'), { code });
  for (const code of ['28P01', '28000', '3D000']) expect(isStatementError(answered(code)), code).toBe(false);
  for (const code of ['57014', '42501', '23505']) expect(isStatementError(answered(code)), code).toBe(true);
});

it('a server that ends or holds a connection is unavailable, and a command says so, by its setting', async () => {
  const open = async (accept: (socket: Socket) => void, options: pg.ClientConfig = {}) => {
    const port = await listenLocally(createServer(accept));
    const connection = new PrimaryConnection({
      host: '127.0.0.1',
      port,
      user: 'u',
      database: 'd',
      password: 'p',
      ...options,
    });
    return connection.connect().then(
      () => null,
      (error: unknown) => error,
    );
  };
  const failures = [
    await open((socket) => socket.destroy()),
    await open(() => {}, { connectionTimeoutMillis: 100 }),
    await open(() => {}, { host: '/nowhere' }),
    withCode('57P01'),
    withCode('EAI_AGAIN'),
  ];
  for (const error of failures) {
    expect(isServerUnavailable(error)).toBe(true);
    expect(describeFailure(error, 'API_DATABASE_URL')).toMatch(
      /^PostgreSQL .* API_DATABASE_URL.* again in a moment\.$/,
    );
  }
  expect(describeFailure(withCode('ENOENT'))).toBe('There is no such file.');
});

it('a connection that this side gives up while it logs in is closed, so that the server has it no longer', async () => {
  const { database } = await setupDatabase();
  const server = parsePostgresUrl(database.urls.worker);
  let isClosed = false;
  const port = await listenLocally(
    createServer((client) => {
      const upstream = connect(server.port, server.host).on('error', () => {});
      client
        .on('error', () => {})
        .on('close', () => {
          isClosed = true;
        });
      client.pipe(upstream).pipe(client);
    }),
  );
  // The server asks for a password, and the client has none to give.
  const connection = new PrimaryConnection(
    connectionOptions({ ...server, host: '127.0.0.1', port, password: null }, { applicationName: 'test' }),
  );
  await expect(connection.connect()).rejects.toThrow('password');
  // The server itself gives up a login after a minute.
  await vi.waitFor(() => expect(isClosed).toBe(true), 20_000);
});

it.each(['says nothing more', 'is closed'])(
  'a connection that %s after its login fails the call that opened it, and nothing else',
  async (end) => {
    const { database } = await setupDatabase();
    const server = parsePostgresUrl(database.urls.worker);
    const port = await listenLocally(
      createServer((client) => {
        const upstream = connect(server.port, server.host);
        for (const socket of [client, upstream]) socket.on('error', () => {});
        client.on('close', () => upstream.destroy()).pipe(upstream);
        upstream.on('data', (bytes) => {
          client.write(bytes);
          if (bytes.at(-6) !== 'Z'.charCodeAt(0)) return; // ReadyForQuery
          client.unpipe(upstream);
          if (end === 'is closed') client.end();
        });
      }),
    );
    const behind = { ...server, host: '127.0.0.1', port };
    const opened = await openDatabase({ server: behind, applicationName: 'test', poolMax: 1, connectTimeoutMs: 500 });
    onTestFinished(() => opened.close());
    const connection = new PrimaryConnection(
      connectionOptions(behind, { applicationName: 'test', connectTimeoutMs: 500 }),
    );
    for (const fail of [() => opened.pool.query('select 1'), () => connection.connect()])
      expect(isServerUnavailable(await fail().catch((error: unknown) => error))).toBe(true);
  },
);
