import { existsSync, renameSync } from 'node:fs';
import path from 'node:path';
import { Client, escapeIdentifier } from 'pg';
import type { LoginRole } from '#domain/db/login-rights.ts';
import { StartupError } from '#runtime/errors.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { startPostgres } from '../../apps/dev/servers/postgres.ts';
import { becomesTrue } from '../../apps/dev/servers/process.ts';
import { startRedis } from '../../apps/dev/servers/redis.ts';
import { startTemporal } from '../../apps/dev/servers/temporal.ts';
import { identify } from '../../apps/dev/state-lock.mjs';
import { prepareWorkflowBundle } from '../../apps/dev/workflow-bundle.ts';
import { migrate } from '../../apps/migrate/migrate.ts';
import { findRoom, getStateFolder, makeRunFolder, removeRunFolder } from './run-folder.ts';

export type ServerName = 'postgres' | 'redis' | 'temporal';

/** Addresses of a run's servers. They stay the same over every restart. */
export interface Addresses {
  ownerUrl: string;
  urls: Record<LoginRole, string>;
  redisUrl: string;
  temporalAddress: string;
  temporalNamespace: string;
}

/**
 * A run's PostgreSQL (durable), Redis and Temporal (with a store on file), which can be killed and
 * restarted.
 */
export interface ChaosServers extends Addresses {
  /** Contains all data and the servers' logs. */
  folder: string;
  /** Sends SIGKILL; resolves when the process has ended. */
  kill(name: ServerName): Promise<void>;
  /** Restarts a killed server at its address and with its data; resolves when it answers. */
  restart(name: ServerName): Promise<void>;
  /** Puts Temporal's store out of its reach; the server must have been killed. */
  loseTemporalStore(): void;
  /** Stops all servers and deletes the folder. Safe to call twice. */
  stop(): Promise<void>;
}

const namespace = 'org-api-chaos';
const database = 'org_api_chaos';

/**
 * Starts the servers in a temporary folder, in memory where 1 GiB is free, and migrates a database.
 * @throws StartupError
 */
export async function startServers(report: (line: string) => void): Promise<ChaosServers> {
  const folder = makeRunFolder(findRoom(1));
  const options = { stateFolder: getStateFolder(folder), report };
  const pids: Partial<Record<ServerName, number>> = {};

  const ports: Record<ServerName, number | null> = { postgres: null, redis: null, temporal: null };
  const start = {
    postgres: () => startPostgres({ ...options, port: ports.postgres, durable: true }),
    redis: async () => {
      const redis = await startRedis({ ...options, port: ports.redis });
      if (redis === null) throw new StartupError('This needs a Redis: install redis-server 7 or newer.');
      return redis;
    },
    temporal: () => startTemporal({ ...options, port: ports.temporal, namespaces: [namespace] }),
  };

  const stop = () => removeRunFolder(folder);
  try {
    const starting = [start.postgres(), start.redis(), start.temporal(), prepareWorkflowBundle(report)] as const;
    const [postgres, redis, temporal] = await Promise.all(starting);
    Object.assign(pids, { postgres: postgres.pid, redis: redis.pid, temporal: temporal.pid });
    Object.assign(ports, { postgres: postgres.port, redis: redis.port, temporal: temporal.port });
    const urls = await makeDatabase(postgres.adminUrl);
    return {
      folder,
      ...urls,
      redisUrl: redis.url,
      temporalAddress: temporal.address,
      temporalNamespace: namespace,
      async kill(name) {
        const pid = pids[name];
        if (pid === undefined) return;
        process.kill(pid, 'SIGKILL');
        const hasEnded = await becomesTrue(() => identify(pid) === null, 10_000);
        if (!hasEnded) throw new Error(`process ${pid} survived SIGKILL`);
      },
      async restart(name) {
        const { pid } = await start[name]();
        pids[name] = pid;
      },
      loseTemporalStore() {
        const store = path.join(getStateFolder(folder), 'temporal', 'store.db');
        // Its bytes are searched for secrets at the end, too.
        for (const suffix of ['', '-wal', '-shm', '-journal'])
          if (existsSync(`${store}${suffix}`)) renameSync(`${store}${suffix}`, `${store}${suffix}.lost`);
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function makeDatabase(adminUrl: string): Promise<Pick<Addresses, 'ownerUrl' | 'urls'>> {
  const admin = new Client({ connectionString: adminUrl });
  await admin.connect();
  await admin.query(`create database ${escapeIdentifier(database)} template template0 encoding 'UTF8'`);
  await admin.end();
  const at = (user?: string) => {
    const url = new URL(adminUrl);
    url.pathname = database;
    if (user !== undefined)
      Object.assign(url, { username: `org_api_login_${user}`, password: `chaos-password-${user}` });
    return url.href;
  };
  const apps = { api: at('api'), worker: at('worker'), console: at('console') };
  const urls = { ...apps, platform: at('platform'), operator: at('operator') };
  const logins = Object.entries(urls).map(([role, url]) => ({
    role: role as LoginRole,
    server: parsePostgresUrl(url),
  }));
  await migrate({ owner: parsePostgresUrl(at()), logins });
  return { ownerUrl: at(), urls };
}
