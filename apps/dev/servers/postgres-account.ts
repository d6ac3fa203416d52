/**
 * The account that PostgreSQL runs as, and whether it can reach a folder. PostgreSQL does not run
 * as root. Root uses the account that owns the data, else `postgres`, else `nobody`.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { StartupError } from '#runtime/errors.ts';
import type { Account } from './process.ts';
import { programEnvironment } from './program-environment.ts';

/**
 * Returns the account for the server of `dataFolder`, which need not exist yet; null for a user who
 * is not root.
 *
 * @throws StartupError when root finds no account.
 */
export function chooseAccount(dataFolder: string): Account | null {
  if (process.getuid?.() !== 0) return null;
  const owner = statSync(dataFolder, { throwIfNoEntry: false });
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid, name: `user ${owner.uid}` };
  const account = findAccount('postgres') ?? findAccount('nobody');
  if (account !== null) return account;
  throw new StartupError(
    'PostgreSQL does not run as root and there is no account `postgres` or `nobody`: start as another user, or set ' +
      'DATABASE_URL to a PostgreSQL 15 or newer.',
  );
}

/** Returns the account of this name, or null when there is none. */
function findAccount(name: string): Account | null {
  try {
    const id = (flag: string) =>
      Number(execFileSync('id', [flag, name], { stdio: ['ignore', 'pipe', 'ignore'], env: programEnvironment() }));
    return { uid: id('-u'), gid: id('-g'), name };
  } catch {
    return null;
  }
}

/**
 * Returns whether the account can enter `folder`. A process of that account tries it, because mode
 * bits alone do not show that (parents, ACLs, mounts).
 */
export function canEnter({ uid, gid }: Account, folder: string): boolean {
  const run = { cwd: '/', uid, gid, stdio: 'ignore', env: programEnvironment() } as const;
  return spawnSync('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], run).status === 0;
}
