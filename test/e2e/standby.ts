/** A primary and a streaming standby of a test's own, which can be promoted. */
import { execFile } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { Client, escapeIdentifier } from 'pg';
import { onTestFinished, vi } from 'vitest';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import type { TestDatabase } from '#test/database.ts';
import { startCopy, writeForServer } from '#test/postgres-copy.ts';
import { getStateFolder, makeRunFolder, removeRunFolder } from '#test/run-folder.ts';
import { startTcpProxy } from '#test/tcp-proxy.ts';
import { startPostgres } from '../../apps/dev/servers/postgres.ts';
import { prepareCluster } from '../../apps/dev/servers/postgres-cluster.ts';
import { migrate } from '../../apps/migrate/migrate.ts';

const run = promisify(execFile);
const patient = { timeout: 30_000, interval: 50 };
const report = () => {};

/**
 * Starts a primary with a migrated database, its standby, and an address that leads to the primary.
 * The standby begins as a copy of the primary's stopped data: the embedded PostgreSQL has no
 * program that copies a running one.
 */
export async function startPair() {
  const folder = makeRunFolder();
  onTestFinished(() => removeRunFolder(folder));
  const options = { stateFolder: getStateFolder(folder), durable: false, report };
  const first = await startPostgres(options);
  const name = 'org_api_pair';
  const urlsAt = (port: number) => {
    const url = (user?: string) => {
      const changed = new URL(first.adminUrl);
      Object.assign(changed, { port: String(port), pathname: name });
      if (user !== undefined) Object.assign(changed, { username: `org_api_login_${user}`, password: `test-${user}` });
      return changed.href;
    };
    const roles = ['api', 'platform', 'worker', 'console', 'operator'] as const;
    return { owner: url(), roles: roles.map((role) => ({ role, url: url(role) })) };
  };

  await query(first.adminUrl, `create database ${escapeIdentifier(name)} template template0`);
  const { owner, roles } = urlsAt(first.port);
  const logins = roles.map(({ role, url }) => ({ role, server: parsePostgresUrl(url) }));
  await migrate({ owner: parsePostgresUrl(owner), logins });
  await first.stop();

  const cluster = await prepareCluster(options);
  const { data, password } = cluster;
  const copy = `${data}-standby`;
  await run('cp', ['-a', data, copy]);
  writeForServer(cluster, path.join(copy, 'standby.signal'), '');
  const primary = await startPostgres(options);
  appendFileSync(
    path.join(copy, 'postgresql.auto.conf'),
    `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=postgres password=${password}'\n`,
  );
  const standbyPort = await startCopy(cluster, copy);
  onTestFinished(() => primary.stop());
  const standbyUrl = urlsAt(standbyPort).owner;
  await vi.waitFor(() => query(standbyUrl, 'select 1'), patient);

  const address = await startTcpProxy({ host: '127.0.0.1', port: primary.port });
  const behind = urlsAt(address.port);
  const database: TestDatabase = {
    name,
    ownerUrl: behind.owner,
    urls: Object.fromEntries(behind.roles.map(({ role, url }) => [role, url])) as TestDatabase['urls'],
    drop: async () => {},
  };
  return {
    database,
    /** Makes the primary reject writes, and leads new connections to the standby. */
    async demote(): Promise<void> {
      await query(urlsAt(primary.port).owner, 'alter system set default_transaction_read_only = on');
      await query(urlsAt(primary.port).owner, 'select pg_reload_conf()');
      address.redirect(standbyPort);
    },
    /** Promotes the standby when it has all that the primary wrote. The primary still answers. */
    async promote(): Promise<void> {
      const written = await query(urlsAt(primary.port).owner, 'select pg_current_wal_lsn() as value');
      await vi.waitFor(async () => {
        const text = `select pg_last_wal_replay_lsn() >= '${written}' as value`;
        if ((await query(standbyUrl, text)) !== true) throw new Error('the standby is behind');
      }, patient);
      await query(standbyUrl, 'select pg_promote() as value');
    },
    stopOldPrimary: () => primary.stop(),
  };
}

/** Returns the `value` of the first row. */
async function query(url: string, text: string): Promise<unknown> {
  const client = new Client({ connectionString: url });
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query<{ value?: unknown }>(text)).rows[0]?.value;
  } finally {
    await client.end();
  }
}
