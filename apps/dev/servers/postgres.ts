/**
 * The embedded PostgreSQL of `npm start` and `npm test`.
 *
 * - `postgres` is started directly, not by `pg_ctl`, which gives its pid and its end at once.
 * - There is no Unix socket: a deep folder makes its path too long (107 bytes).
 * - A pid file whose pid belongs to another program now would keep PostgreSQL from starting.
 *   PG_GRANDPARENT_PID names that pid, which PostgreSQL then does not take for a postmaster.
 *   Deleting the file would lose the id of the shared memory, by which PostgreSQL waits for
 *   processes of a killed postmaster. That wait ends by itself, so the start is retried for 10 s.
 * - `npm start` flushes to disk, because its data stays. Tests (`durable: false`) do not.
 */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { PrimaryConnection } from '#domain/db/driver/primary-connection.ts';
import { connectionOptions, type PostgresServer } from '#domain/db/server.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { choosePort } from './ports.ts';
import { prepareCluster } from './postgres-cluster.ts';
import type { Report } from './process.ts';
import { programEnvironment } from './program-environment.ts';
import { startServer } from './server-program.ts';

/** The server's log quotes no row and no statement: they have names. */
export const quietLogSettings = {
  log_error_verbosity: 'terse',
  log_min_error_statement: 'panic',
  log_parameter_max_length_on_error: '0',
};

const commonSettings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '128MB',
  timezone: 'UTC',
  log_timezone: 'UTC',
  ...quietLogSettings,
};

/** For data that is deleted soon. POSIX shared memory of a killed server would stay in /dev/shm. */
const throwAwaySettings = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_wal_size: '256MB',
  dynamic_shared_memory_type: 'mmap',
};

/**
 * Brings up PostgreSQL with its data in `stateFolder`, on `port` or another free one. `adminUrl` is
 * the superuser's.
 *
 * @throws StartupError
 */
export async function startPostgres(options: {
  stateFolder: string;
  port?: number | null;
  durable?: boolean;
  report: Report;
}) {
  const { stateFolder, port = null, durable = true, report } = options;
  const cluster = await prepareCluster({ stateFolder, durable, report });
  const { data, folder, logFile, account, binaries } = cluster;
  const settings = Object.entries({ ...commonSettings, ...(durable ? {} : throwAwaySettings) }).flatMap(
    ([name, value]) => ['-c', `${name}=${value}`],
  );
  const adminUrlAt = (port: number) =>
    `postgres://postgres:${encodeURIComponent(cluster.password)}@127.0.0.1:${port}/postgres`;
  const lockFile = path.join(data, 'postmaster.pid');
  const server = await startServer({
    name: `PostgreSQL ${binaries.version}`,
    folder,
    logFile,
    readyMs: 120_000, // recovery after a crash in the middle of an import takes longest
    instead: 'set DATABASE_URL to a PostgreSQL 15 or newer',
    report,
    async prepare() {
      const lockPid = existsSync(lockFile) ? Number.parseInt(readFileSync(lockFile, 'utf8'), 10) : null;
      const chosen = await choosePort(port, 'PostgreSQL', report);
      return {
        server: { port: chosen },
        ports: [chosen],
        launch: {
          command: binaries.postgres,
          args: ['-D', data, '-p', String(chosen), ...settings],
          cwd: '/',
          env: { ...programEnvironment(), ...(lockPid !== null && { PG_GRANDPARENT_PID: String(lockPid) }) },
          account,
        },
      };
    },
    check: ({ port }) =>
      withConnection(parsePostgresUrl(adminUrlAt(port)), async (connection) => {
        const { rows } = await connection.query<{ data: string }>("select current_setting('data_directory') as data");
        if (rows[0]?.data !== data) throw new Error(`another PostgreSQL answers on port ${port}`);
      }),
    // Any other failure removes the file.
    isTemporary: () => existsSync(lockFile),
  });
  return { ...server, adminUrl: adminUrlAt(server.port), folder };
}

/** Runs `work` in a session of its own, which ends afterwards. */
export async function withConnection<Result>(
  server: PostgresServer,
  work: (connection: PrimaryConnection) => Promise<Result>,
) {
  const options = connectionOptions(server, { applicationName: 'org-api-dev', connectTimeoutMs: 10_000 });
  const connection = new PrimaryConnection(options);
  try {
    await connection.connect();
    return await work(connection);
  } finally {
    await connection.end().catch(() => {});
  }
}
