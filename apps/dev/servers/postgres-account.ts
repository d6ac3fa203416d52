/**
 * The account that PostgreSQL runs as, and whether it can reach a folder. PostgreSQL refuses to run
 * as root. Root uses the account that owns the data, else `postgres`, else `nobody`, and creates
 * one only where neither exists, because a development stack should not change the machine's users.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { type Account, type Report, ServerUnavailableError } from './process.ts';
import { programEnvironment } from './program-environment.ts';

const OWN_ACCOUNT = 'org-api-postgres';

/**
 * Returns the account for the server of `dataFolder`, which need not exist yet; null for a user who
 * is not root.
 *
 * @throws ServerUnavailableError when root finds no account and cannot create one.
 */
export function chooseAccount(dataFolder: string, report: Report): Account | null {
  if (process.getuid?.() !== 0) return null;
  const owner = statSync(dataFolder, { throwIfNoEntry: false });
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid, name: `user ${owner.uid}` };
  for (const name of ['postgres', 'nobody', OWN_ACCOUNT]) {
    const account = findAccount(name);
    if (account) return account;
  }
  report(`PostgreSQL does not run as root: creating the system account ${OWN_ACCOUNT} for it (useradd)`);
  spawnSync('useradd', ['--system', '--no-create-home', '--shell', '/usr/sbin/nologin', OWN_ACCOUNT], {
    env: programEnvironment(),
  });
  const made = findAccount(OWN_ACCOUNT);
  if (made) return made;
  throw new ServerUnavailableError(
    'PostgreSQL does not run as root and no account for it could be created: start as an ' +
      'ordinary user, or set DATABASE_URL to a PostgreSQL 15 or newer.',
  );
}

/** Returns the account of this name, or null when there is none or its user id is root's. */
function findAccount(name: string): Account | null {
  try {
    const env = programEnvironment();
    const id = (flag: string) =>
      Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], env }));
    const account = { uid: id('-u'), gid: id('-g'), name };
    return account.uid > 0 ? account : null;
  } catch {
    return null;
  }
}

/**
 * Returns whether the account can enter `folder`. A process of that account tries it, because mode
 * bits alone do not show that (parents, ACLs, mounts).
 */
export function canEnter(account: Account, folder: string): boolean {
  const { uid, gid } = account;
  const run = { cwd: '/', uid, gid, stdio: 'ignore', env: programEnvironment() } as const;
  return spawnSync('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], run).status === 0;
}
