/**
 * Who PostgreSQL runs as, and whether that account reaches a folder.
 *
 * Decision (2026-11-20): PostgreSQL refuses to run as root. For root we take the account that owns
 * the data already, else `postgres`, else `nobody`, and make a system account only where neither
 * exists: a development stack should leave a machine's list of users as it was.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { type Account, ServerUnavailableError } from './process.ts';

const OWN_ACCOUNT = 'org-api-postgres';

/**
 * The account for the server of `dataFolder` (which need not exist yet); null means ourselves, as
 * we are not root. Throws {@link ServerUnavailableError} when root finds and makes none.
 */
export function chooseAccount(dataFolder: string, report: (line: string) => void): Account | null {
  if (process.getuid?.() !== 0) return null;
  const owner = statSync(dataFolder, { throwIfNoEntry: false });
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid, name: `user ${owner.uid}` };
  for (const name of ['postgres', 'nobody', OWN_ACCOUNT]) {
    const account = findAccount(name);
    if (account) return account;
  }
  report(`PostgreSQL does not run as root: creating the system account ${OWN_ACCOUNT} for it (useradd)`);
  spawnSync('useradd', ['--system', '--no-create-home', '--shell', '/usr/sbin/nologin', OWN_ACCOUNT]);
  const made = findAccount(OWN_ACCOUNT);
  if (made) return made;
  throw new ServerUnavailableError(
    'PostgreSQL does not run as root and no account for it could be made here: start as an ' +
      'ordinary user, or set DATABASE_URL to a PostgreSQL 15 or newer.',
  );
}

/** The account of this name, null when there is none or it is root by another name. */
function findAccount(name: string): Account | null {
  try {
    const id = (flag: string) =>
      Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
    const account = { uid: id('-u'), gid: id('-g'), name };
    return account.uid > 0 ? account : null;
  } catch {
    return null;
  }
}

/**
 * Whether the account can enter `folder`. A process of that account tries it, because that counts
 * every parent, ACLs and mounts, which adding up mode bits would not.
 */
export function canEnter(account: Account, folder: string): boolean {
  const { uid, gid } = account;
  return spawnSync('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], { cwd: '/', uid, gid, stdio: 'ignore' }).status === 0;
}
