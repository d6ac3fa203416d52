/**
 * Brings up the real servers once for the whole test run, and the database that every test copies.
 *
 * - `DATABASE_URL` (a login that may create databases and roles) and `REDIS_URL` are used when set.
 *   On such a server only databases with the tests' names are created and dropped; the logins
 *   `org_api_login_*` stay, because roles belong to the whole server.
 * - Without Redis the run fails: the limiter is tested only against the real one.
 * - Data is in memory (/dev/shm) where 2 GiB of it are free, else in the system's temporary folder:
 *   copying the template took 8 ms there and 135 ms on ext4, with either strategy, and a run makes
 *   hundreds of copies. Docker's default of 64 MB is too small and is not used.
 */
import { randomBytes } from 'node:crypto';
import { Client, escapeIdentifier } from 'pg';
import type { TestProject } from 'vitest/node';
import { StartupError } from '#runtime/errors.ts';
import { once } from '#runtime/flow/once.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { startPostgres } from '../../apps/dev/servers/postgres.ts';
import { secondsSince } from '../../apps/dev/servers/process.ts';
import { startRedis } from '../../apps/dev/servers/redis.ts';
import { startTemporal } from '../../apps/dev/servers/temporal.ts';
import { prepareWorkflowBundle } from '../../apps/dev/workflow-bundle.ts';
import { migrate } from '../../apps/migrate/migrate.ts';
import { poolSize } from './pools.ts';
import { findRoom, getStateFolder, makeRunFolder, removeDeadRunFolders, removeRunFolder } from './run-folder.ts';

/** The apps that have a login in a test database. */
export type TestLogin = 'api' | 'platform' | 'worker' | 'console' | 'operator';

declare module 'vitest' {
  export interface ProvidedContext {
    /** URL of a login that may create databases and roles on the run's PostgreSQL. */
    databaseAdminUrl: string;
    /** Name of the migrated, empty database that tests clone; no one can connect to it. */
    templateDatabase: string;
    /** URLs of the apps' logins, for the template: replace the database. */
    databaseLogins: Record<TestLogin, string>;
    /** `host:port` of the run's Temporal. */
    temporalAddress: string;
    /**
     * A namespace for each of Vitest's processes, by its `VITEST_POOL_ID`. In a shared one, the
     * workers of two files would take each other's tasks.
     */
    temporalNamespaces: string[];
    /** The screens of the console's journeys in this run. */
    journeyScreens: ('wide' | 'phone')[];
    /** URL of the run's Redis. Test files share it, so each uses separate keys. */
    redisUrl: string;
  }
}

const report = (line: string) => console.log(`  ${line}`);
const temporalNamespaces = Array.from({ length: poolSize }, (_, index) => `org-api-test-${index + 1}`);

/** Vitest calls this before the first test, and the returned function after the last. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const startedAt = performance.now();
  const open = openRun();
  try {
    await removeDeadRunFolders(report);
    const adminUrl = process.env.DATABASE_URL || (await open.postgres());
    const redisUrl = process.env.REDIS_URL || (await open.redis());
    const temporalAddress = process.env.TEMPORAL_ADDRESS || (await open.temporal());
    const [template] = await Promise.all([buildTemplate(adminUrl), prepareWorkflowBundle(report)]);
    if (process.env.DATABASE_URL) open.closers.push(() => dropDatabases(adminUrl, template.prefix));
    project.provide('databaseAdminUrl', adminUrl);
    project.provide('templateDatabase', template.name);
    project.provide('databaseLogins', template.logins);
    project.provide('redisUrl', redisUrl);
    project.provide('temporalAddress', temporalAddress);
    project.provide('temporalNamespaces', temporalNamespaces);
    report(`servers and template database are ready (${secondsSince(startedAt)})`);
    return open.close;
  } catch (error) {
    await open.close();
    if (!(error instanceof StartupError)) throw error;
    console.error(`\n${error.message}`);
    process.exit(1);
  }
}

/** Starts the servers of a run. What is not closed (Ctrl-C) is killed at exit. */
function openRun() {
  const folder = makeRunFolder(findRoom(2));
  const options = { stateFolder: getStateFolder(folder), report };
  const closers: (() => Promise<void>)[] = [() => removeRunFolder(folder)];
  return {
    closers,
    close: once(async () => {
      for (const closer of closers.reverse()) await closer();
    }),
    postgres: async () => (await startPostgres({ ...options, durable: false })).adminUrl,
    redis: async () => {
      const server = await startRedis(options);
      if (server) return server.url;
      throw new StartupError(
        'The tests need a real Redis and this machine has none: install redis-server or valkey-server ' +
          '7 or newer, or set REDIS_URL.',
      );
    },
    temporal: async () => (await startTemporal({ ...options, namespaces: temporalNamespaces })).address,
  };
}

/**
 * Migrates a new database once; every test's database is a copy of it. Later connections to it are
 * rejected, because they would prevent copying.
 */
async function buildTemplate(adminUrl: string) {
  const startedAt = performance.now();
  const prefix = `org_api_test_${process.pid}_${randomBytes(3).toString('hex')}`;
  const name = `${prefix}_template`;
  const logins = Object.fromEntries(
    (['api', 'platform', 'worker', 'console', 'operator'] as const).map((role) => {
      const url = new URL(adminUrl);
      url.pathname = name;
      url.username = `org_api_login_${role}`;
      url.password = `test-password-${role}`;
      return [role, url.href];
    }),
  ) as Record<TestLogin, string>;
  const ownerUrl = new URL(adminUrl);
  ownerUrl.pathname = name;

  await asAdmin(adminUrl, (admin) => admin.query(`create database ${escapeIdentifier(name)} template template0`));
  const logging = Object.entries(logins).map(([role, url]) => ({
    role: role as TestLogin,
    server: parsePostgresUrl(url),
  }));
  const { current } = await migrate({ owner: parsePostgresUrl(ownerUrl.href), logins: logging });
  await asAdmin(adminUrl, (admin) => admin.query(`alter database ${escapeIdentifier(name)} allow_connections false`));
  report(`template database migrated to ${current} (${secondsSince(startedAt)})`);
  return { name, prefix, logins };
}

async function dropDatabases(adminUrl: string, prefix: string): Promise<void> {
  await asAdmin(adminUrl, async (admin) => {
    const { rows } = await admin.query<{ name: string }>(
      'select datname as name from pg_database where starts_with(datname, $1) order by datname',
      [`${prefix}_`],
    );
    for (const { name } of rows) await admin.query(`drop database if exists ${escapeIdentifier(name)} with (force)`);
  });
}

async function asAdmin<T>(adminUrl: string, work: (admin: Client) => Promise<T>): Promise<T> {
  const admin = new Client({ connectionString: adminUrl, connectionTimeoutMillis: 10_000 });
  try {
    await admin.connect().catch((cause: Error) => {
      throw new StartupError(
        `The PostgreSQL of the tests cannot be used (${cause.message}): ` +
          'start it, or correct DATABASE_URL, or unset it to have one brought up.',
        { cause },
      );
    });
    return await work(admin);
  } finally {
    await admin.end();
  }
}
