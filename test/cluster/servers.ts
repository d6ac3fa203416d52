import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client, escapeIdentifier } from 'pg';
import type { Region } from '#domain/contract/regions.ts';
import type { LoginRole } from '#domain/db/login-rights.ts';
import { StartupError } from '#runtime/errors.ts';
import { startPostgres } from '../../apps/dev/servers/postgres.ts';
import { startRedis } from '../../apps/dev/servers/redis.ts';
import { startTemporal } from '../../apps/dev/servers/temporal.ts';
import { startForward } from './forward.ts';
import { startWith } from './started.ts';

/** The servers of one region, as pods reach them. */
export interface RegionServers {
  region: Region;
  /** The owner's URL from this machine. */
  ownerUrl: string;
  /** URLs for pods: the owner's and the apps' logins, which the migration creates. */
  podOwnerUrl: string;
  podUrls: Record<LoginRole, string>;
  redisUrl: string;
  temporalAddress: string;
  temporalNamespace: string;
}

const roles = ['api', 'worker', 'console', 'platform', 'operator'] as const;

/**
 * Starts PostgreSQL, Redis and Temporal on this machine, with a separate database and namespace for
 * each region. A pod reaches them at `hostAddress`. They stop with `started`. @throws StartupError
 */
export async function startServers(
  regions: readonly Region[],
  hostAddress: string,
  started: AsyncDisposableStack,
  report: (line: string) => void,
): Promise<RegionServers[]> {
  const stateFolder = await mkdtemp(path.join(tmpdir(), 'org-api-cluster-'));
  started.defer(() => rmSync(stateFolder, { recursive: true, force: true, maxRetries: 5 }));
  const forward = async (port: number) => (await startWith(started, () => startForward(hostAddress, port))).port;
  const postgres = await startWith(started, () => startPostgres({ stateFolder, report }));
  const redis = await startWith(started, () => startRedis({ stateFolder, report }));
  if (redis === null) throw new StartupError('This needs a Redis: install redis-server 7 or newer.');
  const namespaces = regions.map(getNamespace);
  const temporal = await startWith(started, () => startTemporal({ stateFolder, namespaces, report }));
  const ports = {
    postgres: await forward(postgres.port),
    redis: await forward(redis.port),
    temporal: await forward(Number(temporal.address.split(':')[1])),
  };
  const made: RegionServers[] = [];
  for (const [index, region] of regions.entries()) {
    const ownerUrl = await makeDatabase(postgres.adminUrl, `org_api_${region}`);
    made.push({
      region,
      ownerUrl,
      podOwnerUrl: atPods(ownerUrl, hostAddress, ports.postgres),
      podUrls: buildPodUrls(atPods(ownerUrl, hostAddress, ports.postgres), region),
      redisUrl: `redis://${hostAddress}:${ports.redis}/${index}`,
      temporalAddress: `${hostAddress}:${ports.temporal}`,
      temporalNamespace: getNamespace(region),
    });
  }
  return made;
}

const getNamespace = (region: Region) => `org-api-${region}`;

function atPods(url: string, host: string, port: number): string {
  const moved = new URL(url);
  moved.hostname = host;
  moved.port = String(port);
  return moved.href;
}

function buildPodUrls(podOwnerUrl: string, region: Region): Record<LoginRole, string> {
  const urls = roles.map((role) => {
    const url = new URL(podOwnerUrl);
    url.username = `org_api_${region}_${role}`;
    url.password = randomBytes(16).toString('hex');
    return [role, url.href] as const;
  });
  return Object.fromEntries(urls) as Record<LoginRole, string>;
}

/** Creates an empty database. Returns its owner's URL. */
export async function makeDatabase(adminUrl: string, name: string): Promise<string> {
  const admin = new Client({ connectionString: adminUrl });
  await admin.connect();
  try {
    await admin.query(`create database ${escapeIdentifier(name)} template template0 encoding 'UTF8'`);
  } finally {
    await admin.end();
  }
  const url = new URL(adminUrl);
  url.pathname = name;
  return url.href;
}
