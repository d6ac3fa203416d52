import { setTimeout as wait } from 'node:timers/promises';
import { Migrator } from '@mikro-orm/migrations';
import { MikroORM } from '@mikro-orm/postgresql';
import type pg from 'pg';
import { PrimaryConnection } from '#domain/db/driver/primary-connection.ts';
import { closePublicFunctions } from '#domain/db/public-functions.ts';
import { currentMigration, isSchemaCurrent } from '#domain/db/schema-version.ts';
import { connectionOptions, defaultTimes, type PostgresServer } from '#domain/db/server.ts';
import { ormOptions } from '#domain/open-database.ts';
import { commentSql } from './comments.ts';
import { ensureLogin, getLogin, type Login } from './logins.ts';
import { migrations as allMigrations, type NamedMigration } from './migrations/index.ts';

const applicationName = 'org-api-migrate';

/** The advisory lock that migrators of one database take: "orga" in ASCII. */
const migrationLock = 0x6f726761;

/** A server that accepts a connection and says nothing would hold the call, and the chart's Job, for as long. */
const { connectTimeoutMs } = defaultTimes;

/**
 * How long a statement waits for a lock: a migration, which then frees its locks and pauses, and a
 * call that waits for another. Later statements queue behind a migration, including inserts of reads,
 * and a read fails after 5 s. Without the limit, one forgotten transaction would stop every read for
 * as long as it lasts.
 */
const lockTimeoutMs = 2_000;
const lockRestMs = 5_000;
/** About 3.5 minutes of tries; then the call fails, and the chart's Job tries again later. */
const lockTries = 30;
const lockNotAvailable = '55P03';

interface MigrateOptions {
  /** The database's owner, which may create roles, schemas and tables. */
  owner: PostgresServer;
  /** One login per app; each is created or brought up to date, with its password and rights. */
  logins: Login[];
  /** Days for which the worker must keep the audit log; unchanged when absent. */
  auditLogFloorDays?: number | undefined;
  /** Receives one line per step, for people. */
  report?: (line: string) => void;
  /** Other migrations, for tests. */
  migrations?: readonly NamedMigration[];
}

interface Migrated {
  /** Names of the migrations that the call applied, in order. */
  applied: string[];
  /** The migration that this version needs. */
  current: string;
}

/**
 * Brings a database from any state, including empty, to the current schema, and its logins up to
 * date.
 *
 * Two calls may run at once: MikroORM's migrator takes no lock and the second would fail on its
 * first statement, so a separate connection holds an advisory lock. Pending migrations commit
 * together or not at all, divided by those that are not transactional, which run alone. A lock that
 * is not free within 2 s is tried again, at most 30 times. A failure is recorded in the database
 * until a later call succeeds.
 */
export async function migrate(options: MigrateOptions): Promise<Migrated> {
  const { owner, report = () => {}, migrations = allMigrations } = options;
  for (const login of options.logins) getLogin(login, owner.user); // before anything changes
  const lock = new PrimaryConnection(connectionOptions(owner, { applicationName, connectTimeoutMs, lockTimeoutMs }));
  await lock.connect();
  try {
    await acquireMigrationLock(lock);
    const target = { owner, migrations };
    const pending = await withMigrator(target, { alone: false }, (migrator) => migrator.getPending());
    const applied = pending.map(({ name }) => name);
    for (const { names, alone } of buildBatches(applied, migrations)) {
      report(`applying ${names.length} migration${names.length === 1 ? '' : 's'}: ${names.join(', ')}`);
      try {
        await retryWhileLocked(
          () => withMigrator(target, { alone }, (migrator) => migrator.up({ migrations: names })),
          report,
        );
      } catch (cause) {
        await recordFailure(lock, names, cause).catch(() => {}); // the cause matters more
        throw cause;
      }
    }
    await lock.query('delete from migration_failure');
    if (options.auditLogFloorDays !== undefined)
      await lock.query('update retention_floor set audit_log_days = $1', [options.auditLogFloorDays]);
    // At each call: they are texts of this code, and no migration, which stays as it was applied.
    if (await isSchemaCurrent(lock)) await lock.query(commentSql());
    for (const login of options.logins) await ensureLogin(lock, login);
    const open = await closePublicFunctions(lock);
    if (open.length > 0)
      report(
        `every login may still call ${open.length} functions of large objects and advisory locks, because the owner ` +
          'is no superuser; run the statements of docs/operations/prepare-postgresql.md as one',
      );
    return { applied, current: currentMigration };
  } finally {
    await lock.end();
  }
}

/**
 * Acquires the lock of migrators, however long another call has it. Each statement that waits for it
 * is short: `create index concurrently` of that call waits for every snapshot, also for the one of a
 * statement that waits for the call, and PostgreSQL sees no deadlock in that.
 */
async function acquireMigrationLock(lock: PrimaryConnection): Promise<void> {
  for (;;)
    try {
      await lock.query('select pg_advisory_lock($1)', [migrationLock]);
      break;
    } catch (error) {
      if ((error as { code?: unknown }).code !== lockNotAvailable) throw error;
    }
  await lock.query('set lock_timeout = 0'); // what follows locks nothing that a read needs
}

/**
 * Records which migrations failed, and PostgreSQL's code, for the operator to show.
 *
 * @throws DatabaseError when the first migration failed, which creates the table.
 */
async function recordFailure(client: pg.Client, names: readonly string[], cause: unknown): Promise<void> {
  const { code } = cause as { code?: unknown };
  await client.query(
    `insert into migration_failure (names, code) values ($1, $2)
     on conflict (id) do update set names = excluded.names, code = excluded.code, failed_at = excluded.failed_at`,
    [names, typeof code === 'string' ? code : null],
  );
}

interface Batch {
  names: string[];
  /** Whether it is one migration that runs outside a transaction. */
  alone: boolean;
}

/** Returns what is pending, in order: groups that commit together and migrations that run alone. */
function buildBatches(pending: readonly string[], migrations: readonly NamedMigration[]): Batch[] {
  const byName = new Map(migrations.map((migration) => [migration.name, migration]));
  const batches: Batch[] = [];
  for (const name of pending) {
    const alone = byName.get(name)?.class.prototype.isTransactional() === false;
    const last = batches.at(-1);
    if (alone || last === undefined || last.alone) batches.push({ names: [name], alone });
    else last.names.push(name);
  }
  return batches;
}

/** Runs `apply` again when a lock was not free: nothing was changed then. */
async function retryWhileLocked(apply: () => Promise<unknown>, report: (line: string) => void): Promise<void> {
  for (let left = lockTries - 1; ; left -= 1) {
    try {
      await apply();
      return;
    } catch (error) {
      if ((error as { code?: unknown }).code !== lockNotAvailable || left === 0) throw error;
      report(
        `a transaction holds what the migration changes, for longer than ${lockTimeoutMs / 1000} s; nothing was ` +
          `changed, tried again in ${lockRestMs / 1000} s (${left} times more)`,
      );
      await wait(lockRestMs);
    }
  }
}

/** Opens MikroORM's migrator, which opens a transaction for all migrations or for none. */
async function withMigrator<T>(
  { owner, migrations }: Required<Pick<MigrateOptions, 'owner' | 'migrations'>>,
  { alone }: Pick<Batch, 'alone'>,
  use: (migrator: MikroORM['migrator']) => Promise<T>,
): Promise<T> {
  const orm = await MikroORM.init({
    // A concurrent build waits for others without delaying them, and one that fails would have to
    // start again.
    ...ormOptions(owner, { applicationName, connectTimeoutMs, ...(!alone && { lockTimeoutMs }) }),
    extensions: [Migrator],
    migrations: {
      migrationsList: [...migrations],
      tableName: 'schema_migration',
      snapshot: false,
      disableForeignKeys: false,
      transactional: !alone,
    },
  });
  try {
    return await use(orm.migrator);
  } finally {
    await orm.close(true);
  }
}
