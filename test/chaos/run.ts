import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { type Database, openDatabase } from '#domain/db/connect.ts';
import { createKey } from '#domain/keys/create.ts';
import { testKeySecrets, testKeySettings } from '#test/secrets.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { becomesTrue, readLastComplaint, secondsSince } from '../../apps/dev/servers/process.ts';
import { uuidOf } from '../../apps/import/generate/dice.ts';
import { type AppProcess, startAppProcess } from './app-processes.ts';
import { insertOrganization, insertWebhook, makeChange, nameMark, subjectIds } from './changes.ts';
import { causeFaults, type Victim } from './faults.ts';
import { type Figures, judge } from './judge.ts';
import { describeLooks, type LedgerLook, lookAtLedger } from './ledger-looks.ts';
import { planOf } from './plan.ts';
import { type ReceivingWebhook, startReceivers } from './receivers.ts';
import { findSecrets, type Searched } from './secrets-check.ts';
import { type ChaosServers, startServers } from './servers.ts';
import { otherSealingKey, sealingKeys, shiftedClock, workerEnvironment } from './worker-settings.ts';

export interface ChaosOptions {
  /** Changes made, each of which obliges us to every webhook. */
  events: number;
  /** 1 to 20. */
  webhooks: number;
  /** Decides what receivers do and what dies when. */
  seed: number;
  /** How often each server and each worker is killed. */
  kills?: number;
  /** How long everything may take to be settled after the last fault. */
  settleDeadlineMs?: number;
  report: (line: string) => void;
}

export interface ChaosResult {
  /** Sentences with ids only; none when nothing was lost and nothing was told. */
  problems: string[];
  figures: Figures;
  kills: Record<string, number>;
  /** What the ledger said after every kill and restart, in order. */
  looks: LedgerLook[];
  searched: Searched;
  workflows: number;
  seconds: number;
}

/**
 * Twelve attempts in half a minute: more than a receiver that recovers can need with those that are
 * lost to kills, and few enough that one that never does, at about an attempt a second, ends in
 * time.
 */
const schedule = '200ms,500ms,1s,2s,3s,3s,4s,4s,5s,5s,5s';

/**
 * Obligations to receivers that answer, fail, hang and reset, while two workers (with the relay in
 * each), Temporal, PostgreSQL and Redis are killed again and again; then compares the database with
 * what the receivers saw, and searches everything for secrets. Bounded in time; everything it
 * started is gone when it resolves.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const { report } = options;
  const closers: (() => Promise<void>)[] = [];
  try {
    const servers = await startServers(report);
    closers.push(() => servers.stop());
    return await runOn(servers, options, closers);
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

async function runOn(
  servers: ChaosServers,
  options: ChaosOptions,
  closers: (() => Promise<void>)[],
): Promise<ChaosResult> {
  const { events, seed, kills: times = 3, settleDeadlineMs = 300_000, report } = options;
  const startedAt = performance.now();
  const owner = await openDatabase({ url: servers.ownerUrl, applicationName: 'chaos', poolMax: 4 });
  closers.push(() => owner.close());
  const { organization, webhooks, receivers, apiKey } = await arrange(owner, options);
  closers.push(() => receivers.stop());
  const { workers, api } = await startApps(servers, closers);
  const reader = readContinuously(api.url, organization.id, apiKey);
  closers.push(() => reader.stop());

  const victims: Victim[] = [
    ...workers.map((worker, index) => ({
      name: `worker ${index + 1}`,
      kill: () => worker.kill(),
      restart: null,
      holdsLedger: false,
    })),
    ...(['temporal', 'postgres', 'redis'] as const).map((name) => ({
      name,
      kill: () => servers.kill(name),
      restart: () => servers.restart(name),
      holdsLedger: name === 'postgres',
    })),
  ];
  const looks: LedgerLook[] = [];
  const look = async (when: string) => void looks.push(await lookAtLedger(owner.pool, when));
  const [kills] = await Promise.all([causeFaults({ seed, victims, times, look, report }), makeChanges()]);
  report(`${events} events are made, faults are over (${secondsSince(startedAt)})`);
  const problems: string[] = [];
  if (!(await settles(owner, settleDeadlineMs, report))) problems.push('not every obligation was settled in time');
  for (const worker of workers) await worker.stop();
  await reader.stop();

  const webhookIds = [...webhooks.keys()];
  const verdict = await judge({ pool: owner.pool, posts: receivers.posts, webhookIds, events, looks });
  report(`compared with the receivers (${secondsSince(startedAt)})`);
  const search = await findSecrets({
    forbidden: {
      signingSecrets: [...webhooks.values()].map(({ secret }) => secret),
      apiKeys: [apiKey],
      nameMark,
      bodyParts: ['"data":{"', '"createdAt":"', ...subjectIds(seed, events)],
    },
    pool: owner.pool,
    redisUrl: servers.redisUrl,
    temporal: { address: servers.temporalAddress, namespace: servers.temporalNamespace },
    folder: servers.folder,
  });
  for (const [index, worker] of workers.entries()) {
    const ended = worker.endedByItself();
    const complaint = readLastComplaint(worker.logFile, 0);
    if (ended > 0) report(`worker ${index + 1} ended by itself ${ended} times and was started again (${complaint})`);
  }
  return {
    problems: [...problems, ...verdict.problems, ...search.problems],
    figures: verdict.figures,
    kills,
    looks,
    searched: search.searched,
    workflows: search.workflows,
    seconds: Math.round((performance.now() - startedAt) / 1000),
  };

  /** Spread over the time in which things are killed. */
  async function makeChanges(): Promise<void> {
    for (let index = 0; index < events; index += 1) {
      await makeChange(owner.pool, organization, seed, index, 60_000);
      await new Promise((resolve) => setTimeout(resolve, 30_000 / events));
    }
  }
}

async function arrange(owner: Database, { webhooks: count, seed }: ChaosOptions) {
  const organization = await insertOrganization(owner.pool, seed);
  const input = { organizationId: organization.id, makerId: organization.userId, label: 'chaos', byOperator: true };
  const { key } = await createKey(owner.orm.em, { ...input, scopes: ['org.read'], expiresAt: null }, testKeySecrets);
  const webhooks = new Map<string, ReceivingWebhook>();
  const receivers = await startReceivers(webhooks);
  for (let index = 0; index < count; index += 1) {
    const webhookId = uuidOf('chaos', seed, 'webhook', index);
    const fields = {
      organizationId: organization.id,
      webhookId,
      slot: index + 1,
      url: receivers.urlOf(webhookId),
      keys: sealingKeys,
    };
    const { secret } = await insertWebhook(owner.pool, fields);
    webhooks.set(webhookId, { secret, plan: (sequence, nth) => planOf(seed, index, sequence, nth) });
  }
  return { organization, webhooks, receivers, apiKey: key };
}

async function startApps(servers: ChaosServers, closers: (() => Promise<void>)[]) {
  const folder = path.join(servers.folder, 'apps');
  mkdirSync(folder);
  const start = async (
    name: 'api' | 'worker',
    label: string,
    environment: Record<string, string> | ((life: number) => Record<string, string>),
  ) => {
    const app = await startAppProcess({ name, label, folder, environment });
    closers.push(() => app.stop());
    return app;
  };
  const worker = workerEnvironment(servers, { DELIVERY_SCHEDULE: schedule, RECONCILE_AFTER: '8s' });
  const port = await getFreePort();
  const [first, second, api] = await Promise.all([
    // After its first kill it lacks the key that opens signing secrets, until the next.
    start('worker', 'worker-1', (life) => (life === 2 ? { ...worker, WEBHOOK_SECRET_KEYS: otherSealingKey } : worker)),
    start('worker', 'worker-2', { ...worker, ...shiftedClock }),
    start('api', 'api', {
      REGION: 'us',
      API_DATABASE_URL: servers.urls.api,
      REDIS_URL: servers.redisUrl,
      PORT: String(port),
      ...testKeySettings,
    }),
  ]);
  await becomesTrue(() => answers(first), 60_000, 100);
  return { workers: [first, second], api: { ...api, url: `http://127.0.0.1:${port}` } };
}

async function answers(app: AppProcess): Promise<boolean> {
  try {
    return (await fetch(`${app.metricsUrl}/metrics`, { signal: AbortSignal.timeout(1_000) })).ok;
  } catch {
    return false;
  }
}

/**
 * Reads with the key all the while, so that Redis and the API's log have something to hold; what is
 * answered is other tests' matter.
 */
function readContinuously(url: string, organizationId: string, key: string) {
  let stopped = false;
  const done = (async () => {
    while (!stopped) {
      const headers = { authorization: `Bearer ${key}` };
      const signal = AbortSignal.timeout(5_000);
      await fetch(`${url}/v1/orgs/${organizationId}`, { headers, signal })
        .then((answer) => answer.text())
        .catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  })();
  return {
    stop: () => {
      stopped = true;
      return done;
    },
  };
}

/** Waits until no delivery is open. Reports how many are each five seconds. */
async function settles(owner: Database, deadlineMs: number, report: (line: string) => void): Promise<boolean> {
  const startedAt = performance.now();
  let nextReportAt = startedAt + 5_000;
  return becomesTrue(
    async () => {
      const { rows } = await owner.pool.query<{ open: number; late: number }>(
        `select count(*)::int as open, count(*) filter (where next_attempt_at < now() - interval '5 seconds')::int as late
         from delivery where state not in ('delivered', 'exhausted', 'cancelled')`,
      );
      const { open = 0, late = 0 } = rows[0] ?? {};
      if (performance.now() > nextReportAt) {
        report(`${open} deliveries are open, ${late} of them late (${secondsSince(startedAt)} after the last fault)`);
        nextReportAt += 5_000;
      }
      return open === 0;
    },
    deadlineMs,
    250,
  );
}

/** A run in a few lines. */
export function describeResult({ figures, kills, looks, searched, workflows, seconds }: ChaosResult): string[] {
  const list = (counts: Record<string, number>) =>
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count.toLocaleString('en')}`)
      .join(', ');
  const { causes, ...rest } = figures;
  return [
    `${list(rest)} (${seconds} s)`,
    `attempts by cause: ${list(causes)}`,
    `killed: ${list(kills)}`,
    `read the ledger after each kill and restart: ${describeLooks(looks)}`,
    `searched for secrets, bytes: ${list(searched)}; ${workflows} histories`,
  ];
}
