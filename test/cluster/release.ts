import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Region } from '#domain/contract/regions.ts';
import type { Cluster } from './cluster.ts';
import type { RegionSecrets } from './installation.ts';
import type { RegionServers } from './servers.ts';

/**
 * More revisions than the test creates: Helm keeps 10, and the last rollback is to one of the
 * first.
 */
const history = ['--history-max', '30'];

/** A version: its image, and its charts. */
export interface Image {
  repository: string;
  tag: string;
  /** A folder. */
  charts: string;
}

/** Returns an image as values of both charts have it. */
export const imageValues = ({ repository, tag }: Image) => ({ repository, tag, pullPolicy: 'IfNotPresent' });

/** A region's release in the cluster. */
export interface Release {
  name: string;
  namespace: string;
  /** Adds values to every later upgrade. */
  set(values: Record<string, unknown>): void;
  /**
   * Installs or upgrades to an image and waits until the new version serves. `values` are added to
   * those of the region.
   */
  upgrade(image: Image, options?: { values?: Record<string, unknown>; timeout?: string }): Promise<void>;
  rollback(revision: number): Promise<void>;
  /** The deployed revision. */
  currentRevision(): Promise<number>;
  uninstall(): Promise<void>;
}

/** Keys and values of a region's Secret. */
export function buildSecret({ servers, secrets }: { servers: RegionServers; secrets: RegionSecrets }) {
  return {
    DATABASE_URL: servers.podOwnerUrl,
    API_DATABASE_URL: servers.podUrls.api,
    WORKER_DATABASE_URL: servers.podUrls.worker,
    CONSOLE_DATABASE_URL: servers.podUrls.console,
    OPERATOR_DATABASE_URL: servers.podUrls.operator,
    REDIS_URL: servers.redisUrl,
    KEY_PEPPERS: secrets.keyPeppers,
    KEY_TAG_SECRETS: secrets.keyTagSecrets,
    WEBHOOK_SECRET_KEYS: secrets.webhookSecretKeys,
  };
}

/** Creates the Secret of a region, as an SRE would beforehand. */
export async function applySecrets(
  cluster: Cluster,
  namespace: string,
  region: { servers: RegionServers; secrets: RegionSecrets },
): Promise<void> {
  const name = `org-api-${region.servers.region}`;
  await cluster.apply(namespace, [
    { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData: buildSecret(region) },
  ]);
}

/** The release of a region; both regions are in one namespace, which the chart supports. */
export function createRelease(
  cluster: Cluster,
  options: { namespace: string; servers: RegionServers; folder: string },
): Release {
  const { namespace, servers, folder } = options;
  let kept: Record<string, unknown> = {};
  const name = `org-api-${servers.region}`;
  const valuesFile = path.join(folder, `${name}.json`);
  const revision = async () => {
    const status = JSON.parse(await cluster.helm(['status', name, '-n', namespace, '-o', 'json'])) as {
      version: number;
    };
    return status.version;
  };
  return {
    name,
    namespace,
    set(values) {
      kept = mergeValues(kept, values);
    },
    async upgrade(image, { values = {}, timeout = '180s' } = {}) {
      const merged = mergeValues(mergeValues(buildValues(cluster, servers, image), kept), values);
      writeFileSync(valuesFile, JSON.stringify(merged));
      // As in the guide: without --wait-for-jobs, because new pods are unready until the migrations
      // have ended.
      const args = [
        'upgrade',
        '--install',
        name,
        `${image.charts}/org-api`,
        '-n',
        namespace,
        '-f',
        valuesFile,
        '--wait',
      ];
      await cluster.helm([...args, '--timeout', timeout, ...history], { timeoutMs: 300_000 });
    },
    async rollback(to) {
      const args = ['rollback', name, String(to), '-n', namespace, '--wait', '--timeout', '180s'];
      await cluster.helm([...args, ...history], { timeoutMs: 300_000 });
    },
    currentRevision: revision,
    async uninstall() {
      await cluster.helm(['uninstall', name, '-n', namespace, '--wait', '--timeout', '120s'], { timeoutMs: 180_000 });
      // Of an upgrade that failed, as in docs/operations/remove-a-region.md.
      const migrations = `app.kubernetes.io/instance=${name},app.kubernetes.io/component=migrations`;
      await cluster.kubectl(['delete', 'jobs', '-n', namespace, '-l', migrations]);
    },
  };
}

/** Public URLs of a region's API. */
export const apiOrigin = (region: Region) => `https://api.${region}.example.com`;

/** Public URLs of a region's console. */
export const consoleOrigin = (region: Region) => `https://console.${region}.example.com`;

/**
 * Small requests, as a machine of two cores needs for two regions, their surge and the receiver.
 */
const resources = { requests: { cpu: '50m', memory: '128Mi' } };

/** Peers in network policies: all servers, and the name server of `up`, listen on the node. */
export function listPeers(servers: RegionServers) {
  const [address, port] = servers.temporalAddress.split(':');
  const to = [{ ipBlock: { cidr: `${address}/32` } }];
  const getPort = (url: string) => Number(new URL(url).port);
  return {
    dns: { to },
    database: { to, port: getPort(servers.podOwnerUrl) },
    redis: { to, port: getPort(servers.redisUrl) },
    temporal: { to, port: Number(port) },
  };
}

function buildValues({ serviceRange }: Cluster, servers: RegionServers, image: Image): Record<string, unknown> {
  return {
    region: servers.region,
    baseUrls: { us: apiOrigin('us'), ca: apiOrigin('ca') },
    image: imageValues(image),
    secrets: { existingSecret: `org-api-${servers.region}` },
    allowPlaintext: ['postgresql', 'redis', 'temporal'], // the test's servers run outside the cluster
    temporal: { address: servers.temporalAddress, namespace: servers.temporalNamespace },
    api: { resources },
    console: { enabled: true, url: consoleOrigin(servers.region), resources },
    worker: {
      resources,
      webhookAllow: [serviceRange], // the receiver is in the cluster
      deliverySchedule: '1s,2s,3s,5s,10s,20s,30s,60s,60s,60s,60s,60s', // longer than a rollout of both regions
      requeueAfter: '60s',
      readyAfter: '10s', // this tests the trial, not its default length
    },
    migrations: { resources, backoffLimit: 1 },
    networkPolicy: {
      http: { from: [{ namespaceSelector: {} }, { ipBlock: { cidr: '0.0.0.0/0' } }] },
      webhooks: { ipv6: false }, // kube-router 1 supports only IPv4, and fails at IPv6 blocks
      ...listPeers(servers),
      // An engine judges a connection to a Service by the pod's address, which `webhookAllow`
      // lacks.
      extraEgress: [{ to: [{ podSelector: { matchLabels: { app: 'receiver' } } }] }],
    },
  };
}

/** Merges values as Helm does: maps are merged, everything else is replaced. */
function mergeValues(base: Record<string, unknown>, over: Record<string, unknown>): Record<string, unknown> {
  const merged = { ...base };
  for (const [name, value] of Object.entries(over))
    merged[name] = isMap(value) && isMap(merged[name]) ? mergeValues(merged[name], value) : value;
  return merged;
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
