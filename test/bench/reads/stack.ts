import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { startRedis } from '../../../apps/dev/servers/redis.ts';
import { migrate } from '../../../apps/migrate/migrate.ts';
import { asOwner, startServers } from '../servers.ts';
import { BenchError } from './options.ts';
import { type BenchKey, fillGrants, fillOrganizations, makeSecrets, shareGrants } from './region.ts';

/** Servers of the benchmark with production settings: commits are flushed to disk. */
export interface BenchStack {
  redisUrl: string;
  /** Pids, for processor time. */
  postgresPid: number;
  redisPid: number;
  secrets: ReturnType<typeof makeSecrets>;
  keys: BenchKey[];
  /** A file with a line for each key, in the format of requests.lua. */
  keysFile: string;
  folder: string;
  /** Creates a region with the same organizations and keys, and new clients. */
  addRegion(name: string, clients: { grantsEach: number } | { grants: number }): Promise<BenchRegion>;
  stop(): Promise<void>;
}

/** One region's database. `apiUrl` is the login of the API, `ownerUrl` has all rights. */
export interface BenchRegion {
  apiUrl: string;
  ownerUrl: string;
}

type Report = (line: string) => void;

/**
 * Starts PostgreSQL and Redis in a new folder, and migrates a template with organizations and keys.
 * `stop` removes everything.
 */
export async function startStack(report: Report): Promise<BenchStack> {
  return startServers(report, async ({ folder, postgres, onStop, stop }) => {
    const redis = await startRedis({ stateFolder: folder, report });
    if (redis === null)
      throw new BenchError('The benchmark needs a real Redis and this machine has none: install redis-server.');
    onStop(() => redis.stop());

    const secrets = makeSecrets();
    const template = await createRegion(postgres.adminUrl, 'bench_template', null);
    const keys = await asOwner(template.ownerUrl, (owner) => fillOrganizations(owner, secrets));
    const keysFile = path.join(folder, 'keys.txt');
    writeFileSync(keysFile, keys.map(({ key, organizationId }) => `${key} ${organizationId}\n`).join(''), {
      mode: 0o600,
    });
    report(`${keys.length} keys of ${new Set(keys.map((key) => key.organizationId)).size} organizations are created`);

    async function addRegion(name: string, clients: { grantsEach: number } | { grants: number }): Promise<BenchRegion> {
      const region = await createRegion(postgres.adminUrl, `bench_${name}`, 'bench_template');
      const share = 'grants' in clients ? shareGrants(clients.grants) : { ...clients, bigGrants: 0 };
      await asOwner(region.ownerUrl, (owner) => fillGrants(owner, share.grantsEach, share.bigGrants));
      report(`region ${name}: ${share.grantsEach} grants in each organization, ${share.bigGrants} in one more`);
      return region;
    }
    return {
      redisUrl: redis.url,
      postgresPid: postgres.pid,
      redisPid: redis.pid,
      secrets,
      keys,
      keysFile,
      folder,
      addRegion,
      stop,
    };
  });
}

/**
 * Creates a database, copied from `template` when there is one, with the current schema and a login
 * for the API.
 */
async function createRegion(adminUrl: string, database: string, template: string | null): Promise<BenchRegion> {
  await asOwner(adminUrl, (admin) => admin.query(`create database ${database} template ${template ?? 'template0'}`));
  const ownerUrl = new URL(adminUrl);
  ownerUrl.pathname = database;
  const apiUrl = new URL(ownerUrl);
  apiUrl.username = 'bench_api';
  apiUrl.password = 'bench';
  await migrate({
    owner: parsePostgresUrl(ownerUrl.href),
    logins: [{ role: 'api', server: parsePostgresUrl(apiUrl.href) }],
  });
  return { apiUrl: apiUrl.href, ownerUrl: ownerUrl.href };
}
