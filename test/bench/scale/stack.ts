import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { Client } from 'pg';
import { openDatabase } from '#domain/db/connect.ts';
import { migrate } from '#domain/db/migrate.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { webhookSecretKeys } from '#runtime/settings/types.ts';
import { prepareWorkflowBundle, workflowBundle } from '../../../apps/dev/prebuilt.ts';
import { startPostgres } from '../../../apps/dev/servers/postgres.ts';
import { discardCluster } from '../../../apps/dev/servers/postgres-cluster.ts';
import { makeFolder } from '../../../apps/dev/servers/process.ts';
import type { DeliveryTarget } from '../deliveries/changes.ts';
import { startReceiver, startWorkerProcess } from '../deliveries/processes.ts';
import { type BenchServers, startServers } from '../servers.ts';
import { type ClusterOptions, startTemporalCluster, type TemporalCluster } from './temporal-cluster.ts';

/** A PostgreSQL of the stack, with a connection of its superuser. */
export interface MeasuredPostgres {
  name: string;
  pid: number;
  admin: Client;
}

/** Workers, Temporal's nodes and the two PostgreSQL servers, all in separate processes. */
export interface ScaleStack extends DeliveryTarget {
  temporal: TemporalCluster;
  /** PostgreSQL of org-api and of Temporal. */
  postgres: readonly [MeasuredPostgres, MeasuredPostgres];
  /** In Temporal's visibility database. */
  visibility: Client;
  workerPids(): number[];
  addWorker(): Promise<void>;
  stop(): Promise<void>;
}

const namespace = 'org-api-scale';
const database = 'bench';

/** Starts everything except the workers. */
export function startStack(options: Omit<ClusterOptions, 'adminUrl' | 'folder' | 'namespace'>): Promise<ScaleStack> {
  return startServers(options.report, (servers) => openStack(servers, options));
}

async function openStack(
  { folder, postgres, onStop, stop }: BenchServers,
  options: Omit<ClusterOptions, 'adminUrl' | 'folder' | 'namespace'>,
): Promise<ScaleStack> {
  const { report } = options;
  const temporalFolder = path.join(folder, 'temporal');
  makeFolder(temporalFolder);
  onStop(() => discardCluster(temporalFolder));
  const temporalPostgres = await startPostgres({ stateFolder: temporalFolder, report });
  onStop(() => temporalPostgres.stop());
  const temporal = await startTemporalCluster({
    ...options,
    adminUrl: temporalPostgres.adminUrl,
    folder: temporalFolder,
    namespace,
  });
  onStop(() => temporal.stop());
  await prepareWorkflowBundle();

  async function connect(url: string, name?: string): Promise<Client> {
    const target = new URL(url);
    if (name !== undefined) target.pathname = name;
    const client = new Client({ connectionString: target.href });
    await client.connect();
    onStop(() => client.end());
    return client;
  }

  const admin = await connect(postgres.adminUrl);
  await admin.query(`create database ${database} template template0 encoding 'UTF8'`);
  const ownerUrl = new URL(postgres.adminUrl);
  ownerUrl.pathname = database;
  const workerUrl = new URL(ownerUrl);
  Object.assign(workerUrl, { username: 'bench_worker', password: 'bench' });
  await migrate({
    owner: parsePostgresUrl(ownerUrl.href),
    logins: [{ role: 'worker', server: parsePostgresUrl(workerUrl.href) }],
  });
  const owner = await openDatabase({ server: parsePostgresUrl(ownerUrl.href), applicationName: 'bench', poolMax: 12 });
  onStop(() => owner.close());
  const receiver = await startReceiver();
  onStop(() => receiver.stop());
  const sealing = `1:${randomBytes(32).toString('base64')}`;
  const pids: number[] = [];

  return {
    owner,
    receiver,
    sealingKeys: webhookSecretKeys.parse(sealing),
    temporal,
    postgres: [
      { name: 'PostgreSQL of org-api', pid: postgres.pid, admin: await connect(postgres.adminUrl, database) },
      {
        name: 'PostgreSQL of Temporal',
        pid: temporalPostgres.pid,
        admin: await connect(temporalPostgres.adminUrl, 'temporal'),
      },
    ],
    visibility: await connect(temporalPostgres.adminUrl, 'temporal_visibility'),
    workerPids: () => [...pids],
    async addWorker() {
      const { pid, stop: stopWorker } = await startWorkerProcess({
        folder,
        environment: {
          REGION: 'us',
          WORKER_DATABASE_URL: workerUrl.href,
          TEMPORAL_ADDRESS: temporal.frontends[pids.length % temporal.frontends.length] as string,
          TEMPORAL_NAMESPACE: namespace,
          WEBHOOK_SECRET_KEYS: sealing,
          WEBHOOK_ALLOW: '127.0.0.0/8',
          WORKFLOW_BUNDLE: workflowBundle,
          READY_AFTER: '0s',
        },
      });
      onStop(() => stopWorker());
      pids.push(pid);
    },
    stop,
  };
}
