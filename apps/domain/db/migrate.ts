import { Migrator } from '@mikro-orm/migrations';
import { MikroORM } from '@mikro-orm/postgresql';
import pg from 'pg';
import { ormOptions } from './connect.ts';
import { ensureLogin, type Login } from './logins.ts';
import { currentMigration, migrations } from './migrations/index.ts';

/** The advisory lock that migrators of one database wait for. Any constant will do; this one spells "orga" in ASCII. */
const migrationLock = 0x6f726761;

export interface MigrateOptions {
  /** URL of the database's owner: it may create roles, schemas and tables. */
  ownerUrl: string;
  /** A login per app; each is made, given its password and its rights, or brought up to date. */
  logins: Login[];
  /** Told one line per step, for people. */
  report?: (line: string) => void;
}

/**
 * Brings a database from whatever it has (also nothing) to the current schema, and its logins up to date.
 *
 * Safe when two start at once: MikroORM's migrator takes no lock and the second would fail on its first statement, so a
 * connection of its own holds an advisory lock meanwhile. All pending migrations commit together or not at all.
 *
 * @returns the names applied by this call, and the one the database has now.
 */
export async function migrate(options: MigrateOptions): Promise<{ applied: string[]; current: string }> {
  const report = options.report ?? (() => {});
  const lock = new pg.Client({ connectionString: options.ownerUrl, application_name: 'org-api-migrate' });
  await lock.connect();
  try {
    await lock.query('select pg_advisory_lock($1)', [migrationLock]);
    const applied = await applyPending(options.ownerUrl, report);
    for (const login of options.logins) await ensureLogin(lock, login);
    return { applied, current: currentMigration };
  } finally {
    await lock.end();
  }
}

async function applyPending(ownerUrl: string, report: (line: string) => void): Promise<string[]> {
  const orm = await MikroORM.init({
    ...ormOptions(ownerUrl),
    extensions: [Migrator],
    migrations: {
      migrationsList: migrations,
      tableName: 'schema_migration',
      snapshot: false,
      disableForeignKeys: false,
    },
  });
  try {
    const pending = await orm.migrator.getPending();
    if (pending.length === 0) return [];
    report(
      `applying ${pending.length} migration${pending.length === 1 ? '' : 's'}: ${pending.map((m) => m.name).join(', ')}`,
    );
    const done = await orm.migrator.up();
    return done.map((m) => m.name);
  } finally {
    await orm.close(true);
  }
}
