/**
 * One URL has one reading: what the check for plain text judges is what every client connects to.
 */
import { MikroORM } from '@mikro-orm/postgresql';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import pg from 'pg';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { connectionOptions } from '#domain/db/server.ts';
import { openDatabase, ormOptions } from '#domain/open-database.ts';
import { hostAndPort, InvalidValueError } from '#runtime/settings/connection-url.ts';
import { buildOtlpUrl, parseOtlpEndpoint } from '#runtime/settings/otlp.ts';
import { findPlaintext } from '#runtime/settings/plaintext.ts';
import { formatPostgresUrl, parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { clusterOptions, formatRedisUrl, parseRedisUrl, redisOptions } from '#runtime/settings/redis.ts';
import { parseTemporalAddress } from '#runtime/settings/temporal-address.ts';

const applicationName = 'test';
const hosts = ['localhost', '127.0.0.1', '[::1]', '%2Frun%2Fpg', 'db.example.com', '10.0.0.1', '[2001:db8::1]', ''];
const word = fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme-ascii' }).map(encodeURIComponent);
const port = fc.integer({ min: 1, max: 65_535 });
const parameter = fc.oneof(
  fc.constantFrom('verify-full', 'require', 'no-verify', 'prefer', 'allow', 'disable').map((mode) => `sslmode=${mode}`),
  fc.constantFrom('/run/pg', '127.0.0.1', '::1', 'db.example.com').map((host) => `host=${encodeURIComponent(host)}`),
  port.map((number) => `port=${number}`),
  fc.constantFrom('options=-c', 'service=x', 'user=x', 'dbname=x', 'hostaddr=10.0.0.2', 'ssl=0', 'uselibpqcompat=true'),
);
/** URLs of PostgreSQL of every form, of which many are rejected. */
const urls = fc
  .record({
    login: fc.tuple(word, fc.option(word)).map(([user, password]) => [user, password].filter(Boolean).join(':')),
    host: fc.constantFrom(...hosts, 'a,b'),
    port: fc.option(port),
    database: word,
    parameters: fc.array(parameter, { maxLength: 3 }),
  })
  .map(({ login, host, port: number, database, parameters }) => {
    const query = parameters.length > 0 ? `?${parameters.join('&')}` : '';
    return `postgresql://${login}@${host}${number === null ? '' : `:${number}`}/${database}${query}`;
  });

interface Resolved {
  host: string;
  port: number;
  user: string;
  database: string;
  isPlain: boolean;
  isVerified: boolean;
}

function resolvedBy(options: pg.PoolConfig): Resolved {
  const {
    host,
    port,
    user,
    database = '',
    ssl,
  } = new pg.Client(options) as pg.Client & {
    ssl: { rejectUnauthorized?: boolean } | false;
  };
  return {
    host,
    port,
    user: user ?? '',
    database: database ?? '',
    isPlain: !ssl,
    isVerified: Boolean(ssl) && (ssl as { rejectUnauthorized?: boolean }).rejectUnauthorized === true,
  };
}

describe('a URL of PostgreSQL', () => {
  it('leads pg, the pool of MikroORM and the migrator to the server that was judged, or is rejected', async () => {
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(urls, async (url) => {
        let server: ReturnType<typeof parsePostgresUrl>;
        try {
          server = parsePostgresUrl(url);
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidValueError);
          return;
        }
        accepted += 1;
        const expected = {
          host: server.host,
          port: server.port,
          user: server.user,
          database: server.database,
          isPlain: server.tls === null,
          isVerified: server.tls?.isVerified === true,
        };
        expect(resolvedBy(connectionOptions(server, { applicationName }))).toEqual(expected);
        let migrator: pg.Pool | undefined;
        const keepMigrator = (pool: pg.Pool) => {
          migrator = pool;
        };
        const common = ormOptions(server, { applicationName });
        const orm = await MikroORM.init({
          ...common,
          driverOptions: { ...common.driverOptions, onPoolCreated: keepMigrator },
        });
        orm.em.getKysely();
        expect(resolvedBy((migrator as unknown as { options: pg.PoolConfig }).options)).toEqual(expected);
        await orm.close(true);
        const isLocal = /^(\/|localhost$|127\.0\.0\.1$|::1$)/.test(expected.host);
        expect(findPlaintext({ DATABASE_URL: server }, {}).length).toBe(isLocal || expected.isVerified ? 0 : 1);
        expect(parsePostgresUrl(formatPostgresUrl(server))).toEqual(server);
      }),
      { numRuns: 200 },
    );
    expect(accepted).toBeGreaterThan(20);
  }, 60_000);

  it.each([
    ['postgresql://u:p@h/db?options=-c%20x', 'options'],
    ['postgresql://u:p@h/db?service=x&sslmode=disable', 'service'],
    ['postgresql://u:p@h/db?hostaddr=127.0.0.1', 'hostaddr'],
    ['postgresql://u:p@h/db?user=x', 'user'],
    ['postgresql://u:p@h1,h2/db', 'one host'],
    ['postgresql://u:p@h/db?sslmode=verify-ca', 'sslmode'],
    ['postgresql://u:p@[fe80::1%25eth0]/db', 'zone|percent'],
    ['postgresql://u:p%zz@h/db', 'password'],
    ['postgresql://u:p@/db', 'host'],
    ['postgresql://u:p@h', 'database'],
    ['postgresql://u:p@h/db?sslmode=disable&sslmode=verify-full', 'twice'],
  ])('%s is rejected by the name of what is not read', (url, name) => {
    expect(() => parsePostgresUrl(url)).toThrow(InvalidValueError);
    expect(() => parsePostgresUrl(url)).toThrow(new RegExp(name));
  });

  it('opens the server of the parameters host and port, as it opens that of an authority', async () => {
    const { username, password, port: real } = new URL(inject('databaseAdminUrl'));
    const server = parsePostgresUrl(`postgresql://${username}:${password}@/postgres?host=127.0.0.1&port=${real}`);
    expect(server).toEqual(parsePostgresUrl(`postgresql://${username}:${password}@127.0.0.1:${real}/postgres`));
    const database = await openDatabase({ server, applicationName, poolMax: 1 });
    onTestFinished(() => database.close());
    const { rows } = await database.pool.query('select inet_server_port() as port');
    expect(rows).toEqual([{ port: Number(real) }]);
  });

  it('is not completed from the environment', () => {
    const shell = { PGHOST: 'elsewhere', PGPORT: '1', PGSSLMODE: 'require', PGPASSWORD: 'x', PGUSER: 'x' };
    // Files share processes, so the environment itself must come back, not a copy of it.
    for (const [name, value] of Object.entries(shell)) vi.stubEnv(name, value);
    onTestFinished(() => void vi.unstubAllEnvs());
    const options = connectionOptions(parsePostgresUrl('postgresql://u@127.0.0.1/db'), { applicationName });
    expect(resolvedBy(options)).toMatchObject({ host: '127.0.0.1', port: 5432, user: 'u', isPlain: true });
    expect(typeof new pg.Client(options).password).toBe('function');
  });
});

it('a URL of Redis leads ioredis to the server that was judged, also by IPv6 and by a Unix socket', () => {
  const cases = {
    'redis://:pw@[::1]:7000/3': { host: '::1', port: 7000, password: 'pw', db: 3 },
    'rediss://u:p%40w@cache.example.com': { host: 'cache.example.com', port: 6379, username: 'u', password: 'p@w' },
    'unix://:pw@/run/redis.sock?db=2': { path: '/run/redis.sock', password: 'pw', db: 2 },
  };
  for (const [url, options] of Object.entries(cases)) {
    const server = parseRedisUrl(url);
    const redis = new Redis({ ...redisOptions(server), lazyConnect: true });
    expect(redis.options, url).toMatchObject(options);
    expect(Boolean(redis.options.tls), url).toBe(url.startsWith('rediss'));
    if (redis.options.tls) expect(redis.options.tls.rejectUnauthorized, url).toBe(true);
    expect(parseRedisUrl(formatRedisUrl(server))).toEqual(server);
    redis.disconnect();
  }
  for (const url of [
    'redis://h?tls=true',
    'redis://h?connectTimeout=1',
    'redis://h/x',
    'redis://u@h',
    'unix://h/x',
    'unix://a,b/x',
    'redis://a,b',
    'redis://a,?cluster=true',
    'redis://a:0,b?cluster=true',
    'redis://a?cluster=yes',
    'redis://a/1?cluster=true',
    'redis://a?cluster=true&sentinel=x',
    'redis://a?sentinel=',
    'redis://a?sentinel_password=x',
    'redis://a?sentinel=x&sentinel_user=u',
  ])
    expect(() => parseRedisUrl(url), url).toThrow(InvalidValueError);
});

it('a URL of a Redis Cluster or of sentinels names every host, which the check for plain text judges', () => {
  const cluster = parseRedisUrl('rediss://u:pw@a.example.com,[2001:db8::1]:7001?cluster=true');
  const verified = { rejectUnauthorized: true };
  expect(clusterOptions(cluster)).toMatchObject({
    nodes: [
      { host: 'a.example.com', port: 6379 },
      { host: '2001:db8::1', port: 7001 },
    ],
    options: { redisOptions: { username: 'u', password: 'pw', tls: verified } },
  });
  const sentinels = parseRedisUrl('rediss://:pw@a,b:7002/2?sentinel=main&sentinel_user=s&sentinel_password=p%40w');
  expect(redisOptions(sentinels)).toEqual({
    sentinels: [
      { host: 'a', port: 26379 },
      { host: 'b', port: 7002 },
    ],
    name: 'main',
    sentinelUsername: 's',
    sentinelPassword: 'p@w',
    sentinelTLS: verified,
    enableTLSForSentinelMode: true,
    password: 'pw',
    db: 2,
    tls: verified,
  });
  for (const server of [cluster, sentinels]) {
    expect(parseRedisUrl(formatRedisUrl(server))).toEqual(server);
    expect(findPlaintext({ REDIS_URL: server }, {})).toEqual([]);
  }
  const mixed = parseRedisUrl('redis://127.0.0.1,10.0.0.1?cluster=true');
  expect(findPlaintext({ REDIS_URL: mixed }, {})).toEqual([
    expect.stringContaining('REDIS_URL: reaches another machine'),
  ]);
});

it('an OTLP endpoint has one reading, also by IPv6, and what cannot be read is rejected', () => {
  const endpoints = {
    'http://collector.observability.svc:4318': 'http://collector.observability.svc:4318/v1/traces',
    'https://[2001:db8::1]/otlp/a%20b//': 'https://[2001:db8::1]:443/otlp/a%20b/v1/traces',
    'http://[::1]:4318/': 'http://[::1]:4318/v1/traces',
    'http://10.0.0.1': 'http://10.0.0.1:80/v1/traces',
  };
  for (const [text, url] of Object.entries(endpoints)) {
    const endpoint = parseOtlpEndpoint(text);
    expect(buildOtlpUrl(endpoint, 'traces'), text).toBe(url);
    expect(parseOtlpEndpoint(`${new URL(url).href}`.replace('/v1/traces', ''))).toEqual(endpoint);
  }
  for (const text of [
    'http://',
    'http://%2Frun%2Fotlp',
    'http://a,b:4318',
    'http://::1:4318',
    'http://[::1%25eth0]:4318',
    'http://[a]:4318',
    'http://a:0',
    'http://a:65536',
    'http://a:4318?x=1',
    'http://a:4318#x',
    'http://user:pa%zz@a:4318',
    'http://user:word@a:4318',
    'grpc://a:4317',
    'http://a b',
  ])
    expect(() => parseOtlpEndpoint(text), text).toThrow(InvalidValueError);
});

it('an address of Temporal may be IPv6, and is judged as it is reached', () => {
  expect(hostAndPort(parseTemporalAddress('[::1]:7233'))).toBe('[::1]:7233');
  expect(findPlaintext({ TEMPORAL_ADDRESS: parseTemporalAddress('[::1]:7233') }, {})).toEqual([]);
  expect(findPlaintext({ TEMPORAL_ADDRESS: parseTemporalAddress('[2001:db8::1]:7233') }, {})).toHaveLength(1);
  for (const text of ['::1:7233', 'host', 'host:0', 'http://host:1', 'a,b:1'])
    expect(() => parseTemporalAddress(text), text).toThrow(InvalidValueError);
});
