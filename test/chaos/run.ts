import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Database } from '#domain/db/database.ts';
import { createKey } from '#domain/keys/create.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { type AppProcess, startAppProcess } from '#test/app-processes.ts';
import { type ReceivingWebhook, startReceivers } from '#test/receiver-process.ts';
import { type ChaosServers, startServers } from '#test/region-servers.ts';
import { testKeySecrets, testKeySettings } from '#test/secrets.ts';
import { insertOrganization, insertWebhook, makeChange, nameMark, subjectIds } from '#test/webhook-changes.ts';
import { otherSealingKey, sealingKeys, shiftedClock, workerEnvironment } from '#test/worker-settings.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { becomesTrue, readLastComplaint, secondsSince } from '../../apps/dev/servers/process.ts';
import { deriveUuid } from '../../apps/import/generate/random.ts';
import { causeFaults, type Victim } from './faults.ts';
import { type Figures, judge } from './judge.ts';
import { describeReadings, type LedgerReading, readLedgerNow } from './ledger-readings.ts';
import { planBehavior } from './plan.ts';
import { findSecrets, type Searched } from './secrets-check.ts';
import {
  breakReplay,
  countLate,
  type Forgotten,
  forgetLastCommits,
  killWithClaims,
  loseTemporalStore,
  writeAlteredBundle,
} from './staged-faults.ts';

export interface ChaosOptions {
  /** Number of changes; each creates a delivery for every webhook. */
  events: number;
  /** 1 to 20. */
  webhooks: number;
  /** Determines the receivers' behavior and the order of kills. */
  seed: number;
  /** Number of kills of each server and each worker. */
  kills?: number;
  /** Maximum time until everything is settled after the last fault. */
  settleDeadlineMs?: number;
  /**
   * Faults after the kills that take a minute each: code that cannot replay, Temporal's store lost,
   * commits that PostgreSQL forgets.
   */
  hasLongFaults?: boolean;
  report: (line: string) => void;
}

export interface ChaosResult {
  /** Sentences with ids only; empty when nothing was lost and no secret leaked. */
  problems: string[];
  figures: Figures;
  kills: Record<string, number>;
  /** Claims in progress when both workers were killed. */
  claims: number;
  /**
   * Deliveries put back because code that cannot replay did not ask in time; null without the
   * fault.
   */
  late: number | null;
  /** Runs that waited in Temporal's store when it was lost; null without the fault. */
  lostRuns: number | null;
  /** What PostgreSQL forgot; null without the fault. */
  forgotten: Forgotten | null;
  /** The ledger after every kill and restart, in order. */
  readings: LedgerReading[];
  searched: Searched;
  workflows: number;
  seconds: number;
}

/**
 * Twelve attempts in half a minute. This is more than a receiver that recovers can need, including
 * attempts lost to kills. It is also few enough that a receiver that never recovers ends in time.
 */
const schedule = '200ms,500ms,1s,2s,3s,3s,4s,4s,5s,5s,5s';
/** How late a run asks for its attempt before its delivery is put back. */
const lateMs = 8_000;

/**
 * Delivers to receivers that answer, fail, hang and reset, while two workers (with a relay each),
 * Temporal, PostgreSQL and Redis are killed repeatedly. Then it compares the database with the
 * receivers' posts, and searches everything for secrets. The run is bounded in time, and all its
 * processes have ended when it resolves.
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
  const { events, seed, kills: times = 3, settleDeadlineMs = 300_000, hasLongFaults = false, report } = options;
  const startedAt = performance.now();
  const owner = await openDatabase({
    server: parsePostgresUrl(servers.ownerUrl),
    applicationName: 'chaos',
    poolMax: 4,
  });
  closers.push(() => owner.close());
  const { organization, webhooks, receivers, apiKey } = await arrange(owner, options);
  closers.push(() => receivers.stop());
  const settings: WorkerSettings = { lacksSealingKey: false, bundle: null };
  const { workers, api } = await startApps(servers, settings, closers);
  const reader = readContinuously(api.url, organization.id, apiKey);
  closers.push(() => reader.stop());

  let firstWorkerKills = 0;
  const victims: Victim[] = [
    ...workers.map((worker, index) => ({
      name: `worker ${index + 1}`,
      kill: () => {
        // Worker 1 lacks the key that opens signing secrets from its first kill to its second.
        if (index === 0) settings.lacksSealingKey = ++firstWorkerKills === 1;
        return worker.kill();
      },
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
  const readings: LedgerReading[] = [];
  const readAfter = async (when: string) => void readings.push(await readLedgerNow(owner, when));
  const lastEvents = hasLongFaults ? Math.min(8, events) : 0;
  const [kills, claims] = await Promise.all([
    causeFaults({ seed, victims, times, readLedger: readAfter, report }),
    killWithClaims(owner.pool, workers),
    makeChanges(0, events - lastEvents, 30_000 / events),
  ]);
  const altered = hasLongFaults ? await replaceCode() : null;
  const lostRuns = hasLongFaults ? await loseTemporalStore(owner.pool, servers, report) : null;
  const forgotten = hasLongFaults ? await forget() : null;
  report(`${events} events are created, faults have ended (${secondsSince(startedAt)})`);
  const problems: string[] = [];
  if (!(await settles(owner, settleDeadlineMs, report))) problems.push('not every delivery was settled in time');
  const late = altered === null ? null : altered + (await countLate(workers));
  for (const worker of workers) await worker.stop();
  await reader.stop();

  const webhookIds = [...webhooks.keys()];
  const judgement = await judge({
    database: owner,
    posts: receivers.posts,
    webhookIds,
    events,
    readings,
    forgettable: forgotten?.posts ?? null,
  });
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
    problems: [...problems, ...judgement.problems, ...search.problems],
    figures: judgement.figures,
    kills,
    claims,
    late,
    lostRuns,
    forgotten,
    readings,
    searched: search.searched,
    workflows: search.workflows,
    seconds: Math.round((performance.now() - startedAt) / 1000),
  };

  async function makeChanges(from: number, before: number, pauseMs: number): Promise<void> {
    for (let index = from; index < before; index += 1) {
      await makeChange(owner.pool, organization, seed, index, 60_000);
      await wait(pauseMs);
    }
  }

  async function replaceCode(): Promise<number> {
    const bundle = path.join(servers.folder, 'altered-bundle.json');
    await writeAlteredBundle(bundle);
    const useBundle = (name: 'altered' | 'present') => {
      settings.bundle = name === 'altered' ? bundle : null;
    };
    const count = await breakReplay({ workers, useBundle, lateMs, report });
    await becomesTrue(async () => (await Promise.all(workers.map(responds))).every(Boolean), 60_000, 100);
    await readAfter('workers had run code that cannot replay');
    return count;
  }

  async function forget(): Promise<Forgotten> {
    const result = await forgetLastCommits({
      pool: owner.pool,
      servers,
      makeChanges: () => makeChanges(events - lastEvents, events, 0),
      countPosts: () => receivers.posts.length,
      report,
    });
    await readAfter('PostgreSQL had forgotten its last commits');
    await makeChanges(0, events, 0); // existing rows stay, forgotten rows are inserted again
    return result;
  }
}

async function arrange(owner: Database, { webhooks: count, seed }: ChaosOptions) {
  const organization = await insertOrganization(owner.pool, seed);
  const input = { organizationId: organization.id, creatorId: organization.userId, label: 'chaos' };
  const { key } = await createKey(
    owner,
    { ...input, by: 'orgctl', scopes: ['org.read'], expiresAt: null },
    testKeySecrets,
  );
  const webhooks = new Map<string, ReceivingWebhook>();
  const receivers = await startReceivers(webhooks);
  for (let index = 0; index < count; index += 1) {
    const webhookId = deriveUuid('chaos', seed, 'webhook', index);
    const fields = {
      organizationId: organization.id,
      webhookId,
      number: index + 1,
      url: receivers.buildUrl(webhookId),
      keys: sealingKeys,
    };
    const { secret } = await insertWebhook(owner.pool, fields);
    webhooks.set(webhookId, { secret, plan: (sequence, nth) => planBehavior(seed, index, sequence, nth) });
  }
  return { organization, webhooks, receivers, apiKey: key };
}

/** Settings for the next start of a worker. */
interface WorkerSettings {
  /** Worker 1 only. */
  lacksSealingKey: boolean;
  /** Null: the current workflows. */
  bundle: string | null;
}

async function startApps(servers: ChaosServers, settings: WorkerSettings, closers: (() => Promise<void>)[]) {
  const folder = path.join(servers.folder, 'apps');
  mkdirSync(folder);
  const start = async (name: 'api' | 'worker', label: string, environment: () => Record<string, string>) => {
    const app = await startAppProcess({ name, label, folder, environment });
    closers.push(() => app.stop());
    return app;
  };
  const worker = () =>
    workerEnvironment(servers, {
      DELIVERY_SCHEDULE: schedule,
      REQUEUE_AFTER: `${lateMs / 1_000}s`,
      ...(settings.bundle === null ? {} : { WORKFLOW_BUNDLE: settings.bundle }),
    });
  const port = await getFreePort();
  const [first, second, api] = await Promise.all([
    start('worker', 'worker-1', () => ({
      ...worker(),
      ...(settings.lacksSealingKey ? { WEBHOOK_SECRET_KEYS: otherSealingKey } : {}),
    })),
    start('worker', 'worker-2', () => ({ ...worker(), ...shiftedClock })),
    start('api', 'api', () => ({
      REGION: 'us',
      API_DATABASE_URL: servers.urls.api,
      REDIS_URL: servers.redisUrl,
      PORT: String(port),
      ...testKeySettings,
    })),
  ]);
  await becomesTrue(() => responds(first), 60_000, 100);
  return { workers: [first, second], api: { ...api, url: `http://127.0.0.1:${port}` } };
}

async function responds(app: AppProcess): Promise<boolean> {
  try {
    return (await fetch(`${app.metricsUrl}/metrics`, { signal: AbortSignal.timeout(1_000) })).ok;
  } catch {
    return false;
  }
}

/**
 * Reads continuously with the key, so that Redis and the API's log have content. Other tests judge
 * the responses.
 */
function readContinuously(url: string, organizationId: string, key: string) {
  let stopped = false;
  const done = (async () => {
    while (!stopped) {
      const headers = { authorization: `Bearer ${key}` };
      const signal = AbortSignal.timeout(5_000);
      await fetch(`${url}/v1/orgs/${organizationId}`, { headers, signal })
        .then((response) => response.text())
        .catch(() => {});
      await wait(300);
    }
  })();
  return {
    stop: () => {
      stopped = true;
      return done;
    },
  };
}

/** Waits until no delivery is open. Reports the number every five seconds. */
async function settles(owner: Database, deadlineMs: number, report: (line: string) => void): Promise<boolean> {
  const startedAt = performance.now();
  let nextReportAt = startedAt + 5_000;
  return becomesTrue(
    async () => {
      const { rows } = await owner.pool.query<{ open: number; late: number }>(
        `select count(*)::int as open, count(*) filter (where due_at < now() - interval '5 seconds')::int
          as late
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

/** Summarizes a run in a few lines. */
export function describeResult(result: ChaosResult): string[] {
  const { figures, kills, claims, late, lostRuns, forgotten, readings, searched, workflows, seconds } = result;
  const list = (counts: Record<string, number>) =>
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count.toLocaleString('en')}`)
      .join(', ');
  const { causes, ...rest } = figures;
  return [
    `${list(rest)} (${seconds} s)`,
    `attempts by cause: ${list(causes)}`,
    `killed: ${list(kills)}, both workers while ${claims} slots were reserved`,
    ...(late === null ? [] : [`deliveries put back because their code could not replay: ${late}`]),
    ...(lostRuns === null ? [] : [`runs lost with Temporal’s store: ${lostRuns}`]),
    ...(forgotten === null
      ? []
      : [`forgotten by PostgreSQL: ${forgotten.events} events, ${forgotten.attempts} attempts`]),
    `read the ledger after each kill and restart: ${describeReadings(readings)}`,
    `searched for secrets, bytes: ${list(searched)}; ${workflows} histories`,
  ];
}
