/**
 * The embedded PostgreSQL of `npm start` and `npm test`.
 *
 * - `postgres` is started directly, not by `pg_ctl`, which gives its pid and its end at once.
 * - There is no Unix socket: a deep folder makes its path too long (107 bytes).
 * - A running postmaster of this data folder is adopted, and `stop()` stops it.
 * - A pid file whose pid belongs to another program now would keep PostgreSQL from starting.
 *   PG_GRANDPARENT_PID names that pid, which PostgreSQL then does not take for a postmaster.
 *   Deleting the file would lose the id of the shared memory, by which PostgreSQL waits for
 *   processes of a killed postmaster. That wait ends by itself, so the start is retried for 10 s.
 * - `npm start` flushes to disk, because its data stays. Tests (`durable: false`) do not.
 */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { connectionOptions } from '#domain/db/server.ts';
import { Session } from '#domain/db/session.ts';
import { once } from '#runtime/flow/once.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { choosePort, isPortFree } from './ports.ts';
import {
  type Cluster,
  prepareCluster,
  readPostmasterPid,
  SERVER_ENVIRONMENT,
  STOP_SIGNALS,
} from './postgres-cluster.ts';
import {
  fileSize,
  isServerOf,
  type Report,
  readLastComplaint,
  ServerUnavailableError,
  secondsSince,
  spawnDetached,
  stopServer,
} from './process.ts';

/** A PostgreSQL that answers. `adminUrl` is the superuser's, `version` for example `18.4`. */
export type RunningPostgres = ReturnType<typeof ready>;

const applicationName = 'org-api-dev';
const RETRY_MS = 10_000;
const READY_DEADLINE_MS = 120_000; // recovery after a crash in the middle of an import takes longest
const WRONG_PASSWORD = '28P01'; // SQLSTATE
const PROGRESS_EVERY_MS = 5_000;

/**
 * Brings up PostgreSQL with its data in `stateFolder`, or adopts the one that runs there. `port`
 * null takes the previous port or any free one.
 *
 * @throws ServerUnavailableError
 */
export async function startPostgres(options: {
  stateFolder: string;
  port?: number | null;
  durable?: boolean;
  report: Report;
}): Promise<RunningPostgres> {
  const { stateFolder, port = null, durable = true, report } = options;
  const startedAt = performance.now();
  const cluster = await prepareCluster({ stateFolder, durable, report });
  const preferred = port ?? readLastPort(cluster);
  const retriesEndAt = performance.now() + RETRY_MS;
  let hasReportedWait = false;
  for (;;) {
    const adopted = await adopt(cluster, report);
    if (adopted) return ready(cluster, adopted, true, startedAt, report);
    const launched = await launch(cluster, await choosePort(preferred, 'PostgreSQL', report), durable, report);
    if ('port' in launched) return ready(cluster, launched, false, startedAt, report);
    const hasPidFile = existsSync(path.join(cluster.data, 'postmaster.pid')); // any other failure removes it
    const isTemporary = hasPidFile || launched.isPortTaken;
    if (!isTemporary || performance.now() > retriesEndAt) throw refused(cluster, launched.complaint);
    if (!hasPidFile) continue;
    if (!hasReportedWait) report('PostgreSQL: the previous server still uses the data; trying again for up to 10 s');
    hasReportedWait = true;
    await wait(250);
  }
}

type Postmaster = { pid: number; port: number };

function ready(cluster: Cluster, { pid, port }: Postmaster, adopted: boolean, startedAt: number, report: Report) {
  const { version } = cluster.binaries;
  report(
    `PostgreSQL ${version} ${adopted ? 'was running already' : 'is ready'} on 127.0.0.1:${port} ` +
      `(${secondsSince(startedAt)})`,
  );
  const stop = once(() => stopServer(pid, cluster.data, STOP_SIGNALS)); // at most 40 s
  return { adminUrl: adminUrl(cluster, port), port, version, adopted, folder: cluster.folder, pid, stop };
}

/** Returns the postmaster that runs on this data when it answers, or null. */
async function adopt(cluster: Cluster, report: Report): Promise<Postmaster | null> {
  const pid = readPostmasterPid(cluster.data);
  if (pid === null || !isServerOf(pid, cluster.data)) return null;
  const isGone = () => !isServerOf(pid, cluster.data);
  const endsAt = performance.now() + RETRY_MS; // the port is in the file a moment after the pid
  while (!isGone()) {
    const port = readLastPort(cluster);
    if (port !== null) return (await answers(cluster, port, isGone, report)) ? { pid, port } : null;
    if (performance.now() > endsAt) throw refused(cluster, `process ${pid} uses the data, and its port is not known`);
    await wait(25);
  }
  return null;
}

/** Returns the port in the pid file, which a killed postmaster leaves, or null. */
function readLastPort({ data }: Cluster): number | null {
  const file = path.join(data, 'postmaster.pid');
  // an orderly stop removes the pid file and keeps the command line
  const fallback = path.join(data, 'postmaster.opts');
  const inPidFile = existsSync(file) ? readFileSync(file, 'utf8').split('\n')[3] : undefined;
  const inOptions = existsSync(fallback) ? /"-p" "(\d+)"/.exec(readFileSync(fallback, 'utf8'))?.[1] : undefined;
  const port = Number(existsSync(file) ? inPidFile : inOptions);
  return port > 0 ? port : null;
}

async function launch(
  cluster: Cluster,
  port: number,
  durable: boolean,
  report: Report,
): Promise<Postmaster | { isPortTaken: boolean; complaint: string }> {
  const { data, account, binaries, logFile } = cluster;
  const lockPid = readPostmasterPid(data);
  const foreignPid = lockPid !== null && !isServerOf(lockPid, data) ? lockPid : null;
  const logStart = fileSize(logFile);
  const child = await spawnDetached({
    command: binaries.postgres,
    args: ['-D', data, '-p', String(port), ...settings(durable)],
    cwd: '/',
    env: { ...SERVER_ENVIRONMENT, ...(foreignPid !== null && { PG_GRANDPARENT_PID: String(foreignPid) }) },
    logFile,
    account,
  });
  try {
    if (await answers(cluster, port, child.hasExited, report)) return { pid: child.pid, port };
  } catch (error) {
    await stopServer(child.pid, data, STOP_SIGNALS);
    throw error;
  }
  const complaint = readLastComplaint(logFile, logStart) || (await child.exited);
  return { isPortTaken: !(await isPortFree(port)), complaint };
}

function settings(durable: boolean): string[] {
  const values = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: 200,
    shared_buffers: '128MB',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...(durable ? {} : throwAwaySettings),
  };
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** For data that is deleted soon. POSIX shared memory of a killed server would stay in /dev/shm. */
const throwAwaySettings = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_wal_size: '256MB',
  dynamic_shared_memory_type: 'mmap',
};

/**
 * Waits until this data's server answers on `port`. Returns false when the server ended before.
 *
 * @throws Error when it takes longer than the deadline.
 */
async function answers(cluster: Cluster, port: number, isGone: () => boolean, report: Report): Promise<boolean> {
  const startedAt = performance.now();
  let nextReportAt = startedAt + PROGRESS_EVERY_MS;
  while (!isGone()) {
    const failure = await findFailure(cluster, port);
    if (failure === null) return true;
    const now = performance.now();
    if (now - startedAt > (failure.isFinal ? RETRY_MS : READY_DEADLINE_MS)) {
      throw refused(cluster, `not usable after ${secondsSince(startedAt)}: ${failure.reason}`);
    }
    if (now >= nextReportAt) {
      report(`PostgreSQL: still starting, ${secondsSince(startedAt)} (${failure.reason})`);
      nextReportAt = now + PROGRESS_EVERY_MS;
    }
    await wait(50);
  }
  return false;
}

/** Returns why the server on `port` cannot be used, or null. `isFinal`: it refuses this client. */
async function findFailure(cluster: Cluster, port: number): Promise<{ reason: string; isFinal: boolean } | null> {
  const client = new Session(
    connectionOptions(parsePostgresUrl(adminUrl(cluster, port)), { applicationName, connectTimeoutMs: 5_000 }),
  );
  client.on('error', () => {}); // the failed query reports it as well
  try {
    await client.connect();
    const { rows } = await client.query<{ data: string }>("select current_setting('data_directory') as data");
    if (rows[0]?.data === cluster.data) return null;
    return { reason: `another PostgreSQL answers on port ${port}`, isFinal: true };
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    return { reason: message, isFinal: code === WRONG_PASSWORD };
  } finally {
    await client.end().catch(() => {});
  }
}

function adminUrl({ password }: Cluster, port: number): string {
  return `postgres://postgres:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`;
}

function refused({ logFile }: Cluster, reason: string): ServerUnavailableError {
  return new ServerUnavailableError(
    `PostgreSQL did not start (${reason}): fix that (its log is ${logFile}), or set DATABASE_URL to a PostgreSQL ` +
      '15 or newer.',
  );
}
