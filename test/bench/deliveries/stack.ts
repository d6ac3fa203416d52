import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { Client } from 'pg';
import type { Database } from '#domain/db/database.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { webhookSecretKeys } from '#runtime/settings/types.ts';
import { getStateFolder, makeRunFolder, removeRunFolder } from '#test/run-folder.ts';
import { startPostgres } from '../../../apps/dev/servers/postgres.ts';
import { startTemporal } from '../../../apps/dev/servers/temporal.ts';
import { migrate } from '../../../apps/migrate/migrate.ts';
import type { Store } from './options.ts';
import { type Bare, type Receiver, startBare, startReceiver, startWorkerProcess } from './processes.ts';

type Report = (line: string) => void;

/** All sides, over one Temporal, with one receiver. */
export interface BenchStack {
  owner: Database;
  receiver: Receiver;
  bare: Bare;
  /** Seals signing secrets of new organizations. */
  sealingKeys: ReturnType<typeof webhookSecretKeys.parse>;
  /** Pids, for processor time. */
  pids: { worker: number; postgres: number; temporal: number };
  /** Folder for a profile of the worker, written when it ends. */
  folder: string;
  stopWorker(): Promise<void>;
}

/** Open parts of a stack, also of one that is still starting. */
export interface Closers {
  add(close: () => Promise<void>): void;
  /** Closes and removes everything, the last first. Safe to call twice. */
  closeAll(): Promise<void>;
}

export function createClosers(): Closers {
  const closers: (() => Promise<void>)[] = [];
  return {
    add: (close) => void closers.push(close),
    async closeAll() {
      for (let close = closers.pop(); close !== undefined; close = closers.pop()) await close();
    },
  };
}

const namespace = 'org-api-bench';
/** The default of DELIVERY_SLOTS, for all sides. */
const slots = 200;

/**
 * Starts servers for the benchmark in a new folder, with production settings: commits are flushed
 * to disk. Adds each opened part to `closers` at once.
 */
export async function startStack(options: {
  store: Store;
  settings: Record<string, string>;
  profile: boolean;
  closers: Closers;
  report: Report;
}): Promise<BenchStack> {
  const { store, settings, profile, closers, report } = options;
  const folder = makeRunFolder(tmpdir());
  const stateFolder = getStateFolder(folder);
  closers.add(() => removeRunFolder(folder));

  const postgres = await startPostgres({ stateFolder, report });
  const inMemory = store === 'memory';
  const temporal = await startTemporal({ stateFolder, namespaces: [namespace], inMemory, report });
  const { ownerUrl, workerUrl } = await makeDatabase(postgres.adminUrl);
  const owner = await openDatabase({
    server: parsePostgresUrl(ownerUrl),
    applicationName: 'bench',
    poolMax: 12,
    statementTimeoutMs: 120_000,
  });
  closers.add(() => owner.close());

  const receiver = await startReceiver();
  closers.add(() => receiver.stop());
  const { address } = temporal;
  const sealingKey = `1:${randomBytes(32).toString('base64')}`;
  const worker = await startWorkerProcess({
    folder,
    environment: {
      REGION: 'us',
      WORKER_DATABASE_URL: workerUrl,
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: namespace,
      WEBHOOK_SECRET_KEYS: sealingKey,
      WEBHOOK_ALLOW: '127.0.0.0/8',
      READY_AFTER: '0s',
      ...settings,
    },
    nodeOptions: profile ? ['--cpu-prof', `--cpu-prof-dir=${folder}`] : [],
  });
  closers.add(() => worker.stop());
  const bare = await startBare({ address, namespace, slots, url: `${receiver.url}/bare` });
  closers.add(() => bare.stop());
  report('the worker of org-api, the bare one and the receiver are running');
  return {
    owner,
    receiver,
    bare,
    folder,
    sealingKeys: webhookSecretKeys.parse(sealingKey),
    pids: { worker: worker.pid, postgres: postgres.pid, temporal: temporal.pid },
    stopWorker: () => worker.stop(),
  };
}

async function makeDatabase(adminUrl: string): Promise<{ ownerUrl: string; workerUrl: string }> {
  const admin = new Client({ connectionString: adminUrl });
  await admin.connect();
  await admin.query(`create database bench template template0 encoding 'UTF8'`);
  await admin.end();
  const ownerUrl = new URL(adminUrl);
  ownerUrl.pathname = 'bench';
  const workerUrl = new URL(ownerUrl);
  Object.assign(workerUrl, { username: 'bench_worker', password: 'bench' });
  await migrate({
    owner: parsePostgresUrl(ownerUrl.href),
    logins: [{ role: 'worker', server: parsePostgresUrl(workerUrl.href) }],
  });
  return { ownerUrl: ownerUrl.href, workerUrl: workerUrl.href };
}
