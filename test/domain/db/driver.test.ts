/** The parts of pg, pg-pool, MikroORM and Kysely that `apps/domain/db/driver` relies on, as installed. */
import { readFileSync } from 'node:fs';
import { createServer, Socket } from 'node:net';
import path from 'node:path';
import { LockMode } from '@mikro-orm/core';
import { PostgreSqlConnection, PostgreSqlPlatform } from '@mikro-orm/postgresql';
import { PostgreSqlNativeQueryBuilder } from '@mikro-orm/sql';
import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isConnectionClosed, isServerUnavailable, messages } from '#domain/db/driver/errors.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { listenLocally } from '#test/listen-locally.ts';
import { setupDatabase } from '#test/setup.ts';

const readme = readFileSync(path.join(import.meta.dirname, '../../../apps/domain/db/driver/README.md'), 'utf8');

async function findServer() {
  const { database } = await setupDatabase();
  const { host, port, database: name, user, password } = parsePostgresUrl(database.ownerUrl);
  return { host, port, database: name, user, password: password ?? '' };
}

/** Opens a client as the library makes it; `prepare` runs before it connects. */
async function openClient(config: pg.ClientConfig = {}, prepare: (client: pg.Client) => void = () => {}) {
  const client = new pg.Client({ ...(await findServer()), ...config });
  client.on('error', () => {});
  onTestFinished(() => client.end().catch(() => {}));
  prepare(client);
  await client.connect();
  return client;
}

/** Opens a pool of one connection as the library makes it, and Kysely over it. */
async function openPool(config: pg.PoolConfig = {}) {
  const pool = new pg.Pool({ ...(await findServer()), max: 1, ...config });
  pool.on('error', () => {});
  onTestFinished(() => pool.end().catch(() => {}));
  return { pool, kysely: new Kysely<never>({ dialect: new PostgresDialect({ pool }) }) };
}

const getFailure = (work: Promise<unknown>): Promise<Error> =>
  work.then(
    () => new Error('it did not fail'),
    (error: Error) => error,
  );

/** Each part of the README's table, used as the driver uses it. */
const parts: Record<string, () => Promise<void> | void> = {
  '`Client.connection`: event `errorMessage`, before the caller has the error': async () => {
    const client = await openClient({}, ({ connection }) => {
      connection.on('errorMessage', (error: pg.DatabaseError) => Object.assign(error, { detail: 'replaced' }));
    });
    expect(await getFailure(client.query('select 1 / 0'))).toMatchObject({ code: '22012', detail: 'replaced' });
  },
  '`Client.connection`: event `parameterStatus`': async () => {
    const reported = new Map<string, string>();
    await openClient({}, ({ connection }) => {
      connection.on('parameterStatus', (status: { parameterName: string; parameterValue: string }) =>
        reported.set(status.parameterName, status.parameterValue),
      );
    });
    expect([reported.get('in_hot_standby'), reported.get('default_transaction_read_only')]).toEqual(['off', 'off']);
  },
  '`Client.connection.stream`': async () => {
    const client = await openClient();
    expect(client.connection.stream).toBeInstanceOf(Socket);
    const running = getFailure(client.query('select pg_sleep(60)'));
    client.connection.stream.destroy();
    expect((await running).message).toContain('terminated');
  },
  '`Client.getStartupConf`': async () => {
    const { getStartupConf } = pg.Client.prototype as unknown as { getStartupConf: () => { replication?: string } };
    const client = await openClient({ replication: 'database' } as pg.ClientConfig, (client) => {
      const { replication, ...settings } = getStartupConf.call(client);
      expect(replication).toBe('database');
      Object.assign(client, { getStartupConf: () => ({ ...settings, application_name: 'own' }) });
    });
    expect((await client.query("select current_setting('application_name') as name")).rows).toEqual([{ name: 'own' }]);
  },
  '`Client.query`, replaced on the instance': async () => {
    const lastArguments: string[] = [];
    const { pool, kysely } = await openPool();
    pool.on('connect', (client) => {
      const query = client.query.bind(client) as (...args: unknown[]) => unknown;
      client.query = ((...args: unknown[]) => {
        lastArguments.push(typeof args.at(-1));
        return query(...args);
      }) as typeof client.query;
    });
    await pool.query('select 1');
    await sql`select 1`.execute(kysely);
    expect(lastArguments).toEqual(['function', 'object']);
  },
  '`Pool.connect`, replaced on the instance': async () => {
    const callbacks: string[] = [];
    const { pool, kysely } = await openPool();
    const connect = pool.connect.bind(pool) as (...args: unknown[]) => unknown;
    pool.connect = ((...args: unknown[]) => {
      callbacks.push(typeof args[0]);
      return connect(...args);
    }) as typeof pool.connect;
    await pool.query('select 1');
    await sql`select 1`.execute(kysely);
    expect(callbacks).toEqual(['function', 'undefined']);
  },
  '`Pool.options`, read for each new connection': async () => {
    const { pool } = await openPool();
    Object.defineProperty(pool.options, 'application_name', { get: () => 'of this moment', enumerable: true });
    const { rows } = await pool.query("select current_setting('application_name') as name");
    expect(rows).toEqual([{ name: 'of this moment' }]);
  },
  '`Pool`: event `release`, before the pool decides whether it keeps the client': async () => {
    const { pool } = await openPool();
    pool.once('release', (_error, client) => void client.end());
    const client = await pool.connect();
    const ended = new Promise((resolve) => client.once('end', resolve));
    client.release();
    await ended;
    expect(pool.totalCount).toBe(0);
  },
  '`PoolClient.release`, replaced for one use': async () => {
    const { pool, kysely } = await openPool();
    let released = 0;
    const connect = pool.connect.bind(pool) as () => Promise<pg.PoolClient>;
    pool.connect = (async () => {
      const client = await connect();
      const release = client.release;
      expect(release.name).not.toBe('counting');
      client.release = function counting() {
        released += 1;
        release();
      };
      return client;
    }) as typeof pool.connect;
    await sql`select 1`.execute(kysely);
    await sql`select 1`.execute(kysely);
    expect([released, pool.totalCount]).toEqual([2, 1]);
  },
  '`Pool.end`, which throws when called twice': async () => {
    const { pool, kysely } = await openPool();
    await sql`select 1`.execute(kysely);
    await pool.end();
    expect((await getFailure(kysely.destroy())).message).toContain('more than once');
  },
  '`driverOptions.onPoolCreated` of MikroORM': async () => {
    const { owner } = await setupDatabase();
    expect(owner.pool).toBeInstanceOf(pg.Pool);
    await owner.query(sql`select 1`);
    expect(owner.pool.totalCount).toBe(1);
  },
  '`PostgreSqlConnection.execute` and `transformRawResult`': () => {
    const { prototype } = PostgreSqlConnection as unknown as { prototype: Record<string, unknown> };
    for (const name of ['execute', 'stream', 'ensureConnection', 'transformRawResult', 'getClient'])
      expect(prototype[name], name).toBeTypeOf('function');
  },
  '`PostgreSqlPlatform.formatQuery`, which calls `quoteValue`': () => {
    const platform: PostgreSqlPlatform = Object.create(new PostgreSqlPlatform(), { quoteValue: { value: () => '$1' } });
    expect(platform.formatQuery('a = ? or b = ?', ['secret', 'other'])).toBe('a = $1 or b = $1');
  },
  '`PostgreSqlNativeQueryBuilder.addLockClause`, which adds to `parts`': () => {
    class Builder extends PostgreSqlNativeQueryBuilder {
      override addLockClause(): void {
        super.addLockClause();
        expect(this.parts.at(-1)).toBe('for update');
        expect(this.options.lockMode).toBe(LockMode.PESSIMISTIC_WRITE);
      }
    }
    new Builder(new PostgreSqlPlatform()).select('*').from('t').lockMode(LockMode.PESSIMISTIC_WRITE).compile();
    expect.assertions(2);
  },
};

describe('a part of a library that the driver relies on is there', () => {
  it.each(Object.keys(parts))('%s', (part) => parts[part]?.());

  it('and the README says of each why it is used', () => {
    const rows = readme.split('\n').filter((line) => line.startsWith('| `'));
    expect(rows.map((row) => row.split(' | ')[0]?.slice(2)).sort()).toEqual(Object.keys(parts).sort());
  });
});

/** Makes the error of each message by the installed libraries and a real server. */
const failures: Record<keyof typeof messages, () => Promise<Error>> = {
  noFreeConnection: async () => {
    const { pool } = await openPool({ connectionTimeoutMillis: 2_000 });
    const client = await pool.connect();
    onTestFinished(() => client.release());
    return getFailure(pool.connect());
  },
  connectTimeout: async () => {
    const port = await listenLocally(createServer());
    return getFailure(new pg.Client({ host: '127.0.0.1', port, connectionTimeoutMillis: 100 }).connect());
  },
  poolConnectTimeout: async () => {
    const port = await listenLocally(createServer());
    class PatientClient extends pg.Client {
      constructor(config?: pg.ClientConfig) {
        super({ ...config, connectionTimeoutMillis: 0 });
      }
    }
    const { pool } = await openPool({ host: '127.0.0.1', port, connectionTimeoutMillis: 100, Client: PatientClient });
    return getFailure(pool.connect());
  },
  unanswered: async () => getFailure((await openClient({ query_timeout: 100 })).query('select pg_sleep(5)')),
  lost: async () => {
    const client = await openClient();
    const running = getFailure(client.query('select pg_sleep(60)'));
    client.connection.stream.destroy();
    return running;
  },
  ended: async () => {
    const client = await openClient();
    const running = getFailure(client.query('select pg_sleep(60)'));
    client.end().catch(() => {});
    return running;
  },
  sentAfterLoss: async () => {
    const client = await openClient();
    const failed = new Promise((resolve) => client.once('error', resolve));
    client.connection.stream.destroy();
    await failed;
    return getFailure(client.query('select 1'));
  },
  sentAfterEnd: async () => {
    const client = await openClient();
    await client.end();
    return getFailure(client.query('select 1'));
  },
};

const named = Object.keys(messages) as (keyof typeof messages)[];

it.each(named)('an error without a code has the message that is listed as %s', async (name) => {
  const error = await failures[name]();
  expect([error.message, 'code' in error]).toEqual([messages[name], false]);
  expect(isServerUnavailable(error)).toBe(true);
});

it('a message says that a connection is closed, unless it was waited for, or its server did not answer', () => {
  const open = named.filter((name) => !isConnectionClosed(new Error(messages[name])));
  expect(open).toEqual(['noFreeConnection', 'connectTimeout', 'unanswered']);
});
