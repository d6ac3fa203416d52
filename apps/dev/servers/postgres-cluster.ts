/**
 * The data of the embedded PostgreSQL: its folder, its password and its creation.
 *
 * - The data is in the state folder, or in `/var/lib/org-api/<hash of its path>` when root's
 *   substitute account cannot enter that folder. The password stays in the state folder: after
 *   `.org-api` is deleted, data without its password is discarded.
 * - initdb works in a temporary folder that is renamed when it has finished. A start that is
 *   killed, or two at once, leave complete data or none.
 */
import { createHash, randomBytes } from 'node:crypto';
import {
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { runProgram } from './children.ts';
import { canEnter, chooseAccount } from './postgres-account.ts';
import { getPostgresBinaries, type PostgresBinaries, SHARED_FOLDER } from './postgres-binaries.ts';
import {
  type Account,
  isAlive,
  makeFolder,
  type Report,
  ServerUnavailableError,
  secondsSince,
  stopServer,
} from './process.ts';

/** Fast shutdown, then immediate shutdown (the next start recovers), then SIGKILL. */
export const STOP_SIGNALS = [
  ['SIGINT', 30_000],
  ['SIGQUIT', 5_000],
  ['SIGKILL', 5_000],
] as const;

/** An initialized cluster. `folder` contains only `data`; `account` null means the current user. */
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
 * @throws ServerUnavailableError for data of another version, user or password.
 */
export async function prepareCluster(options: {
  stateFolder: string;
  durable: boolean;
  report: Report;
}): Promise<Cluster> {
  const { durable, report } = options;
  makeFolder(options.stateFolder);
  const stateFolder = realpathSync(options.stateFolder);
  const passwordFile = path.join(stateFolder, 'postgres.password');
  const { inState, elsewhere } = placesOf(stateFolder);

  const account = chooseAccount(path.join(existsSync(inState) ? inState : elsewhere, 'data'), report);
  const folder = !account || canEnter(account, stateFolder) ? inState : elsewhere;
  const data = path.join(folder, 'data');
  if (!existsSync(passwordFile) && existsSync(data)) await discardOrRefuse(folder, folder === elsewhere);
  const binaries = getPostgresBinaries(account, report);
  const cluster = {
    folder,
    data,
    account,
    binaries,
    logFile: path.join(stateFolder, 'postgres.log'),
    password: keepPassword(passwordFile),
  };

  if (existsSync(data)) checkData(cluster);
  else await initialize(cluster, durable, report);
  return cluster;
}

/** Returns the superuser's password. Of two starts that create it, only one can make the link. */
function keepPassword(file: string): string {
  if (!existsSync(file)) {
    const draft = `${file}.${process.pid}-${randomBytes(3).toString('hex')}`;
    writeFileSync(draft, randomBytes(24).toString('base64url'), { mode: 0o600 });
    try {
      linkSync(draft, file);
    } catch (error) {
      if (!existsSync(file)) throw error;
    } finally {
      rmSync(draft);
    }
  }
  return readFileSync(file, 'utf8');
}

/** Returns where the data of a state folder (its real path) may be. */
function placesOf(stateFolder: string): { inState: string; elsewhere: string } {
  const name = createHash('sha256').update(stateFolder).digest('hex').slice(0, 12);
  return { inState: path.join(stateFolder, 'postgres'), elsewhere: path.join(SHARED_FOLDER, name) };
}

async function discardOrRefuse(folder: string, stateWasDeleted: boolean): Promise<void> {
  if (stateWasDeleted) return discardFolder(folder);
  throw new ServerUnavailableError(
    `The password of the PostgreSQL data in ${folder} is missing (postgres.password): restore it, or delete ` +
      `${folder} to start again.`,
  );
}

async function discardFolder(folder: string): Promise<void> {
  const data = path.join(folder, 'data');
  const pid = readPostmasterPid(data);
  if (pid !== null) await stopServer(pid, data, STOP_SIGNALS);
  rmSync(folder, { recursive: true, force: true });
}

/** Stops the PostgreSQL of a state folder, also of another process, and deletes its data. */
export async function discardCluster(stateFolder: string): Promise<void> {
  if (!existsSync(stateFolder)) return;
  const { inState, elsewhere } = placesOf(realpathSync(stateFolder));
  await discardFolder(inState);
  await discardFolder(elsewhere);
}

/** Returns the pid in `postmaster.pid`, or null. It may be dead or another program's. */
export function readPostmasterPid(data: string): number | null {
  try {
    const pid = Number.parseInt(readFileSync(path.join(data, 'postmaster.pid'), 'utf8'), 10);
    return pid > 0 ? pid : null;
  } catch {
    return null;
  }
}

function checkData({ folder, data, account, binaries }: Cluster): void {
  const owner = statSync(data).uid;
  const self = account?.uid ?? process.getuid?.() ?? owner;
  if (owner !== self) {
    throw new ServerUnavailableError(
      `The PostgreSQL data in ${folder} belongs to user ${owner} and not to user ${self}: start as that user, or ` +
        `delete ${folder} to start again.`,
    );
  }
  const made = readFileSync(path.join(data, 'PG_VERSION'), 'utf8').trim();
  if (made !== binaries.version.split('.')[0]) {
    throw new ServerUnavailableError(
      `The PostgreSQL data in ${folder} is of version ${made} and the programs are ${binaries.version}: delete ` +
        `${folder} to start again, or set DATABASE_URL to a PostgreSQL that has your data.`,
    );
  }
}

async function initialize(cluster: Cluster, durable: boolean, report: Report): Promise<void> {
  const { folder, data, account, binaries, password } = cluster;
  const startedAt = performance.now();
  report(`PostgreSQL ${binaries.version}: creating its data folder ${data}${account ? ` as ${account.name}` : ''}`);
  const own = (file: string) => account && chownSync(file, account.uid, account.gid);
  mkdirSync(path.dirname(folder), { recursive: true, mode: 0o755 }); // the account passes through it
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  own(folder);
  removeUnfinished(folder);
  const unfinished = `${data}.unfinished-${process.pid}-${randomBytes(3).toString('hex')}`;
  const passwordFile = `${unfinished}.password`;
  writeFileSync(passwordFile, password, { mode: 0o600 });
  own(passwordFile);
  try {
    await runInitdb(cluster, [
      '-D',
      unfinished,
      `--pwfile=${passwordFile}`,
      '--username=postgres',
      '--auth=scram-sha-256',
      '--no-instructions',
      ...(durable ? [] : ['--no-sync']),
    ]);
    renameSync(unfinished, data);
    report(`PostgreSQL: data folder created (${secondsSince(startedAt)})`);
  } catch (error) {
    // else another process was first, with the same password
    if (!existsSync(path.join(data, 'PG_VERSION'))) throw error;
  } finally {
    rmSync(passwordFile, { force: true });
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/** Removes what killed starts left; the name has the pid of the process that created it. */
function removeUnfinished(folder: string): void {
  for (const name of readdirSync(folder)) {
    const creator = /^data\.unfinished-(\d+)/.exec(name)?.[1];
    if (creator && !isAlive(Number(creator))) rmSync(path.join(folder, name), { recursive: true, force: true });
  }
}

/** Runs initdb. Without C.UTF-8 (older macOS) PostgreSQL's own locale sorts and folds the same. */
async function runInitdb({ folder, account, binaries }: Cluster, args: string[]): Promise<void> {
  const run = (locale: string[]) =>
    runProgram(binaries.initdb, [...args, '--encoding=UTF8', ...locale], {
      cwd: folder,
      env: SERVER_ENVIRONMENT,
      ...(account && { uid: account.uid, gid: account.gid }),
    });
  try {
    await run(['--locale=C.UTF-8']).catch((error: Error & { stderr?: string }) => {
      if (!error.stderr?.includes('invalid locale name')) throw error;
      return run(['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']);
    });
  } catch (cause) {
    const { stderr, message } = cause as Error & { stderr?: string };
    const reason = stderr?.split('\n').find((line) => /error|fatal/i.test(line)) ?? message;
    throw new ServerUnavailableError(
      `PostgreSQL could not create its data folder in ${folder} (${reason.trim()}): fix that, or set DATABASE_URL ` +
        'to a PostgreSQL 15 or newer.',
      { cause },
    );
  }
}

/** The whole environment of initdb and the server: no LANG, no PGDATA. */
export const SERVER_ENVIRONMENT = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/local/bin:/usr/bin:/bin' };
