// cspell:ignore adbin adnum adrelid attnotnull attrdef atttypmod conrelid constraintdef tgenabled viewdef
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { runCommand } from './command.ts';
import { repository } from './images.ts';

/** The version that an upgrade starts from. */
export interface Base {
  commit: string;
  /** A checkout of it, with the packages of this one. */
  folder: string;
  remove(): void;
}

type CreateDatabase = (name: string) => Promise<string>;

/**
 * Returns the version that an upgrade starts from, and why it cannot be upgraded: then there is
 * none.
 */
export async function findBase(createDatabase: CreateDatabase): Promise<{ base: Base | null; problems: string[] }> {
  const base = checkOutBase();
  if (base === null) return { base, problems: ['the base of base.json is not in this clone: fetch the whole history'] };
  const differences = await compareSchemas(base, createDatabase);
  if (differences.length === 0) return { base, problems: [] };
  base.remove();
  const shown = differences.slice(0, 3).join('; ');
  return { base: null, problems: [`the base cannot be upgraded: move it, as the README says (${shown})`] };
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
 * Migrates one database by the base and then by this commit, and another by this commit alone.
 * Returns what differs, which must be nothing: an upgrade ends with the schema of an installation.
 */
async function compareSchemas(base: Base, createDatabase: CreateDatabase): Promise<string[]> {
  const upgraded = await createDatabase('org_api_upgraded');
  const installed = await createDatabase('org_api_installed');
  await migrate(base.folder, upgraded);
  try {
    await migrate(repository, upgraded);
  } catch (error) {
    return [(error as Error).message];
  }
  await migrate(repository, installed);
  const [before, after] = [await listObjects(upgraded), await listObjects(installed)];
  return [
    ...[...before].filter((one) => !after.has(one)).map((one) => `only after an upgrade: ${one}`),
    ...[...after].filter((one) => !before.has(one)).map((one) => `only after an installation: ${one}`),
  ];
}

async function migrate(folder: string, DATABASE_URL: string): Promise<void> {
  const env = { PATH: process.env.PATH, DATABASE_URL, REGION: 'us' };
  await runCommand(process.execPath, ['apps/migrate/main.ts'], { cwd: folder, env });
}

/** Returns the definition of everything in the schema, one line each; columns have no order. */
async function listObjects(connectionString: string): Promise<Set<string>> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    const { rows } = await client.query<{ object: string }>(`
      with named as (select c.* from pg_class c where c.relnamespace = 'public'::regnamespace)
      select concat_ws(' ', 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
          'not null', a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attacl) as object
        from named c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum where c.relkind in ('r', 'p', 'v')
      union all select concat_ws(' ', 'relation', relname, relkind, relacl, reloptions) from named
      union all select concat_ws(' ', 'view', relname, pg_get_viewdef(oid)) from named where relkind = 'v'
      union all select concat_ws(' ', 'index', pg_get_indexdef(oid)) from named where relkind in ('i', 'I')
      union all select concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid))
        from pg_constraint where connamespace = 'public'::regnamespace
      union all select concat_ws(' ', 'trigger', tgenabled, pg_get_triggerdef(oid)) from pg_trigger
        where not tgisinternal
      union all select concat_ws(' ', 'function', pg_get_functiondef(oid), proacl) from pg_proc
        where pronamespace = 'public'::regnamespace and prokind in ('f', 'p')`);
    return new Set(rows.map(({ object }) => object));
  } finally {
    await client.end();
  }
}
