/**
 * The data of the embedded PostgreSQL: its folder, its account, its password and its creation.
 *
 * - PostgreSQL does not run as root. Root uses the account that owns the data, else `postgres`, else
 *   `nobody`.
 * - The data is in the state folder, or in `/var/lib/org-api/<hash of its path>` when root's
 *   substitute account cannot enter that folder. The password stays in the state folder: after
 *   `.org-api` is deleted, data without its password is discarded.
 * - initdb works in a folder that is renamed when it has finished, so a start that is killed leaves
 *   complete data or none. The lock of the state folder keeps a second start away.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { StartupError } from '#runtime/errors.ts';
import { getPostgresBinaries, type PostgresBinaries, SHARED_FOLDER } from './postgres-binaries.ts';
import { type Account, type Report, replaceFile, runProgram, secondsSince } from './process.ts';
import { programEnvironment } from './program-environment.ts';
import { stopLeftOver } from './server-program.ts';

/** An initialized cluster. `folder` is its own; `account` null means the current user. */
export interface Cluster {
  folder: string;
  data: string;
  logFile: string;
  password: string;
  account: Account | null;
  binaries: PostgresBinaries;
}

/**
 * Finds or creates the cluster of a state folder. `durable` false skips the flush to disk.
 *
 * @throws StartupError for data of another version, or without its password.
 */
export async function prepareCluster(options: {
  stateFolder: string;
  durable: boolean;
  report: Report;
}): Promise<Cluster> {
  const { durable, report } = options;
  mkdirSync(options.stateFolder, { recursive: true });
  const stateFolder = realpathSync(options.stateFolder);
  const passwordFile = path.join(stateFolder, 'postgres.password');
  const { inState, elsewhere } = getDataFolders(stateFolder);

  const account = chooseAccount(path.join(existsSync(inState) ? inState : elsewhere, 'data'));
  const folder = account === null || canEnter(account, stateFolder) ? inState : elsewhere;
  const data = path.join(folder, 'data');
  if (!existsSync(passwordFile)) {
    if (existsSync(data) && folder === inState)
      throw new StartupError(
        `The password of the PostgreSQL data in ${folder} is missing (postgres.password): restore it, or delete ` +
          `${folder} to start again.`,
      );
    await stopLeftOver(folder);
    rmSync(folder, { recursive: true, force: true });
    replaceFile(passwordFile, randomBytes(24).toString('base64url'));
  }
  const cluster = {
    folder,
    data,
    account,
    binaries: await getPostgresBinaries(account, report),
    logFile: path.join(stateFolder, 'postgres.log'),
    password: readFileSync(passwordFile, 'utf8'),
  };
  if (existsSync(data)) checkVersion(cluster);
  else await initialize(cluster, durable, report);
  return cluster;
}

/** Returns where the data of a state folder (its real path) may be. */
export function getDataFolders(stateFolder: string): { inState: string; elsewhere: string } {
  const name = createHash('sha256').update(stateFolder).digest('hex').slice(0, 12);
  return { inState: path.join(stateFolder, 'postgres'), elsewhere: path.join(SHARED_FOLDER, name) };
}

/** Returns the account for the server of a folder, which need not exist; null when this process is not root's. */
function chooseAccount(dataFolder: string): Account | null {
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
function canEnter({ uid, gid }: Account, folder: string): boolean {
  const run = { cwd: '/', uid, gid, stdio: 'ignore', env: programEnvironment() } as const;
  return spawnSync('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], run).status === 0;
}

function checkVersion({ folder, data, binaries }: Cluster): void {
  const made = readFileSync(path.join(data, 'PG_VERSION'), 'utf8').trim();
  if (made === binaries.version.split('.')[0]) return;
  throw new StartupError(
    `The PostgreSQL data in ${folder} is of version ${made} and the programs are ${binaries.version}: delete ` +
      `${folder} to start again, or set DATABASE_URL to a PostgreSQL that has your data.`,
  );
}

async function initialize(cluster: Cluster, durable: boolean, report: Report): Promise<void> {
  const { folder, data, account, binaries, password } = cluster;
  const startedAt = performance.now();
  report(`PostgreSQL ${binaries.version}: creating its data folder ${data}${account ? ` as ${account.name}` : ''}`);
  mkdirSync(path.dirname(folder), { recursive: true, mode: 0o755 }); // the account passes through it
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o700 });
  const unfinished = `${data}.unfinished`;
  const passwordFile = `${unfinished}.password`;
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (account) for (const file of [folder, passwordFile]) chownSync(file, account.uid, account.gid);
  // C.UTF-8 of the system, or PostgreSQL's own, which sorts and folds the same: older macOS has none.
  const locale =
    process.platform === 'darwin'
      ? ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
      : ['--locale=C.UTF-8'];
  const args = ['-D', unfinished, `--pwfile=${passwordFile}`, '--username=postgres', '--auth=scram-sha-256'];
  args.push('--no-instructions', '--encoding=UTF8', ...locale, ...(durable ? [] : ['--no-sync']));
  const launch = { command: binaries.initdb, args, cwd: folder, env: programEnvironment(), account };
  const complaint = await runProgram(launch, cluster.logFile);
  if (complaint !== null)
    throw new StartupError(
      `PostgreSQL could not create its data folder in ${folder} (${complaint}): fix that, or set DATABASE_URL to a ` +
        'PostgreSQL 15 or newer.',
    );
  rmSync(passwordFile);
  renameSync(unfinished, data);
  report(`PostgreSQL: data folder created (${secondsSince(startedAt)})`);
}
