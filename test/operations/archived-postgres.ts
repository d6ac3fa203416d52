/** A PostgreSQL with a base backup and an archive of its WAL, which restores to a point in time. */
import { execFile } from 'node:child_process';
import { appendFileSync, chownSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { Client, escapeIdentifier } from 'pg';
import { onTestFinished, vi } from 'vitest';
import type { LoginRole } from '#domain/db/login-rights.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import type { TestDatabase } from '#test/database.ts';
import { startCopy, writeForServer } from '#test/postgres-copy.ts';
import { getStateFolder, makeRunFolder, removeRunFolder } from '#test/run-folder.ts';
import { startPostgres } from '../../apps/dev/servers/postgres.ts';
import { type Cluster, prepareCluster } from '../../apps/dev/servers/postgres-cluster.ts';
import { migrate } from '../../apps/migrate/migrate.ts';

const run = promisify(execFile);
const patient = { timeout: 60_000, interval: 100 };
const name = 'org_api_archived';
const roles = ['api', 'platform', 'worker', 'console', 'operator'] as const;

/** Starts it with a migrated database. It stops when the test ends. */
export async function startArchivedPostgres() {
  const folder = makeRunFolder();
  onTestFinished(() => removeRunFolder(folder));
  const options = { stateFolder: getStateFolder(folder), durable: true, report: () => {} };
  const cluster = await prepareCluster(options);
  const archive = makeArchive(cluster, 'archive');
  const base = `${cluster.data}-base`;
  configure(cluster.data, { archive_mode: 'on', archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f` });
  const server = await startPostgres(options);
  onTestFinished(() => server.stop());
  await withConnection(server.adminUrl, (admin) =>
    admin.query(`create database ${escapeIdentifier(name)} template template0`),
  );
  const database = databaseAt(server.adminUrl, server.port);
  const logins = roles.map((role) => ({ role, server: parsePostgresUrl(database.urls[role]) }));
  await migrate({ owner: parsePostgresUrl(database.ownerUrl), logins });

  return {
    database,
    /** Copies the data of the running server, with the functions for backups. */
    async takeBaseBackup(): Promise<void> {
      const label = await withConnection(server.adminUrl, async (admin) => {
        await admin.query(`select pg_backup_start('base', true)`);
        await run('cp', ['-a', cluster.data, base]);
        const { rows } = await admin.query<{ labelfile: string }>('select labelfile from pg_backup_stop()');
        return rows[0]?.labelfile ?? '';
      });
      rmSync(path.join(base, 'postmaster.pid'), { force: true });
      for (const segment of readdirSync(path.join(base, 'pg_wal'), { withFileTypes: true }))
        if (segment.isFile()) rmSync(path.join(base, 'pg_wal', segment.name));
      writeForServer(cluster, path.join(base, 'backup_label'), label);
    },
    /** Returns the time of the server, as a target of a recovery. */
    readTime: () =>
      withConnection(database.ownerUrl, async (owner) => {
        const { rows } = await owner.query<{ time: string }>('select clock_timestamp()::text as time');
        return rows[0]?.time ?? '';
      }),
    /** Resolves when the archive has all that was written. */
    archiveAll: () =>
      withConnection(database.ownerUrl, async (owner) => {
        const switched = await owner.query<{ file: string }>('select pg_walfile_name(pg_switch_wal()) as file');
        const file = switched.rows[0]?.file ?? '';
        await vi.waitFor(() => {
          if (!readdirSync(archive).includes(file)) throw new Error(`${file} is not archived`);
        }, patient);
      }),
    /** Recovers the base backup by the archive up to a time, as a server of its own. */
    async restore(targetTime: string): Promise<TestDatabase> {
      const data = `${cluster.data}-2`;
      await run('cp', ['-a', base, data]);
      const own = makeArchive(cluster, 'archive-2');
      configure(data, {
        archive_command: `cp %p ${own}/%f`,
        restore_command: `cp ${archive}/%f "%p"`,
        recovery_target_time: targetTime,
        recovery_target_action: 'promote',
      });
      writeForServer(cluster, path.join(data, 'recovery.signal'), '');
      const restored = databaseAt(server.adminUrl, await startCopy(cluster, data));
      await vi.waitFor(
        () =>
          withConnection(restored.ownerUrl, async (owner) => {
            const { rows } = await owner.query<{ recovers: boolean }>('select pg_is_in_recovery() as recovers');
            if (rows[0]?.recovers !== false) throw new Error('the recovery has not ended');
          }),
        patient,
      );
      return restored;
    },
  };
}

function makeArchive({ folder, account }: Cluster, archive: string): string {
  const made = path.join(folder, archive);
  mkdirSync(made);
  if (account) chownSync(made, account.uid, account.gid);
  return made;
}

/** Adds settings; of one that stands there twice, PostgreSQL uses the last. */
function configure(data: string, settings: Record<string, string>): void {
  const lines = Object.entries(settings).map(([setting, value]) => `${setting} = '${value}'\n`);
  appendFileSync(path.join(data, 'postgresql.auto.conf'), lines.join(''));
}

function databaseAt(adminUrl: string, port: number): TestDatabase {
  const url = (role?: LoginRole) => {
    const changed = Object.assign(new URL(adminUrl), { port: String(port), pathname: name });
    if (role !== undefined) Object.assign(changed, { username: `org_api_login_${role}`, password: `test-${role}` });
    return changed.href;
  };
  const urls = Object.fromEntries(roles.map((role) => [role, url(role)])) as TestDatabase['urls'];
  return { name, ownerUrl: url(), urls, drop: async () => {} };
}

async function withConnection<Result>(url: string, work: (client: Client) => Promise<Result>): Promise<Result> {
  const client = new Client({ connectionString: url });
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end();
  }
}
