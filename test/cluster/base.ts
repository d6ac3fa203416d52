// cspell:ignore adbin adnum adrelid attnotnull attrdef atttypmod classoid conrelid constraintdef
// cspell:ignore objoid objsubid tgenabled viewdef
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { startPostgres } from '../../apps/dev/servers/postgres.ts';
import { runCommand } from './command.ts';
import { repository } from './images.ts';
import { makeDatabase } from './servers.ts';
import { startWith } from './started.ts';

/** The version that an upgrade starts from. */
export interface Base {
  commit: string;
  /** A checkout of it, with the packages of this one. */
  folder: string;
  remove(): void;
}

/**
 * Returns the version that an upgrade starts from, or why there is none. It stops what it started,
 * and with `started` at the latest.
 */
export async function findBase(
  started: AsyncDisposableStack,
  report: (line: string) => void,
): Promise<{ base: Base; problem: null } | { base: null; problem: string }> {
  const base = checkOutBase();
  if (base === null) return { base, problem: 'the base of base.json is not in this clone: fetch the whole history' };
  started.defer(() => base.remove());
  const differences = await compareSchemas({ before: base.folder, after: repository }, started, report);
  if (differences.length === 0) return { base, problem: null };
  const shown = differences.slice(0, 3).join('; ');
  const count = `${differences.length} differences, for example ${shown}`;
  return { base: null, problem: `the base has other migrations: move test/cluster/base.json (${count})` };
}

/** Checks out the commit that `base.json` names; null when this clone does not have it. */
function checkOutBase(): Base | null {
  const file = path.join(import.meta.dirname, 'base.json');
  const { commit } = JSON.parse(readFileSync(file, 'utf8')) as { commit: string };
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-base-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
  try {
    git('clone', '--quiet', '--shared', '--no-checkout', repository, '.');
    git('checkout', '--quiet', '--detach', commit);
    symlinkSync(path.join(repository, 'node_modules'), path.join(folder, 'node_modules'));
    return { commit, folder, remove };
  } catch {
    remove();
    return null;
  }
}

/**
 * Migrates one database by the checkout `before` and then by `after`, and another by `after` alone.
 * Returns what differs, which must be nothing: an upgrade ends with the schema of an installation.
 */
export async function compareSchemas(
  { before, after }: { before: string; after: string },
  started: AsyncDisposableStack,
  report: (line: string) => void,
): Promise<string[]> {
  const stateFolder = mkdtempSync(path.join(tmpdir(), 'org-api-schemas-'));
  started.defer(() => rmSync(stateFolder, { recursive: true, force: true, maxRetries: 5 }));
  const postgres = await startWith(started, () => startPostgres({ stateFolder, durable: false, report }));
  try {
    const upgraded = await makeDatabase(postgres.adminUrl, 'upgraded');
    const installed = await makeDatabase(postgres.adminUrl, 'installed');
    await migrate(before, upgraded);
    await migrate(after, installed);
    const error = await migrate(after, upgraded).then(
      () => null,
      (failure: Error) => failure.message,
    );
    if (error !== null) return [error];
    const [first, second] = [await listObjects(upgraded), await listObjects(installed)];
    return [
      ...[...first].filter((one) => !second.has(one)).map((one) => `only after an upgrade: ${one}`),
      ...[...second].filter((one) => !first.has(one)).map((one) => `only after an installation: ${one}`),
    ];
  } finally {
    await postgres.stop();
  }
}

async function migrate(folder: string, DATABASE_URL: string): Promise<void> {
  const env = { PATH: process.env.PATH, DATABASE_URL, REGION: 'us' };
  await runCommand(process.execPath, ['apps/migrate/main.ts'], { cwd: folder, env });
}

/** Returns the definition of everything in every schema, one line each; columns have no order. */
export async function listObjects(connectionString: string): Promise<Set<string>> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    await client.query(`set search_path = ''`); // names are printed with their schema
    const { rows } = await client.query<{ object: string }>(`
      with spaces as (
        select * from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'
      ), named as (select c.* from pg_class c join spaces s on s.oid = c.relnamespace)
      select concat_ws(' ', 'schema', nspname, nspacl) as object from spaces
      union all select concat_ws(' ', 'column', a.attrelid::regclass, a.attname,
          format_type(a.atttypid, a.atttypmod), 'not null', a.attnotnull,
          pg_get_expr(d.adbin, d.adrelid), a.attacl)
        from named c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum where c.relkind in ('r', 'p', 'v')
      union all select concat_ws(' ', 'relation', oid::regclass, relkind, relacl, reloptions) from named
      union all select concat_ws(' ', 'view', oid::regclass, pg_get_viewdef(oid)) from named where relkind = 'v'
      union all select concat_ws(' ', 'index', pg_get_indexdef(oid)) from named where relkind in ('i', 'I')
      union all select concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid))
        from pg_constraint where connamespace in (select oid from spaces)
      union all select concat_ws(' ', 'trigger', tgenabled, pg_get_triggerdef(oid)) from pg_trigger
        where not tgisinternal
      union all select concat_ws(' ', 'function', pg_get_functiondef(oid), proacl) from pg_proc
        where pronamespace in (select oid from spaces) and prokind in ('f', 'p')
      union all select concat_ws(' ', 'comment', classoid::regclass,
          pg_describe_object(classoid, objoid, objsubid), description) from pg_description
        where objoid in (select oid from named union select oid from spaces union select oid from pg_proc
          where pronamespace in (select oid from spaces))`);
    return new Set(rows.map(({ object }) => object));
  } finally {
    await client.end();
  }
}
