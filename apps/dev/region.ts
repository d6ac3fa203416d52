import path from 'node:path';
import type { z } from 'zod';
import type { Region } from '#domain/contract/regions.ts';
import type { PostgresServer } from '#domain/db/server.ts';
import { formatPostgresUrl } from '#runtime/settings/postgresql.ts';
import { Settings as ApiSettings } from '../api/config.ts';
import { Settings as ConsoleSettings } from '../console/config.ts';
import { migrate } from '../migrate/migrate.ts';
import { Settings as ReceiverSettings } from '../receiver/config.ts';
import { causeEvent } from '../receiver/listen/trigger.ts';
import { Settings as WorkerSettings } from '../worker/config.ts';
import { startApp } from './app-process.ts';
import type { DevConfig } from './config.ts';
import { buildLogins, getRegionDatabase, withDatabase } from './databases.ts';
import { getTemporalNamespace, type RegionApp, type RegionPorts } from './region-plan.ts';
import { createOwnerLink, ensureSampleKeys, ensureSampleWebhooks, stackAllow } from './sample-access.ts';
import { ensureSampleProvider, findSampleProvider, linkedAccount } from './sample-provider.ts';
import { importSources, listSources } from './samples.ts';
import { allOrFirstFailure, type Report, secondsSince } from './servers/process.ts';
import type { StackRegion, State } from './state.ts';
import { workflowBundle } from './workflow-bundle.ts';

/** What every step of a start has. */
interface Start {
  config: DevConfig;
  ports: ReadonlyMap<Region, RegionPorts>;
  state: State;
  report: Report;
  /** The sample OpenID provider's. */
  issuer: string;
}

/** The servers that a region's apps use beside PostgreSQL. */
interface RegionServers {
  redisUrl: string | null;
  /** `ui` is null for a server that `npm start` did not bring up. Console and worker wait for it. */
  temporal: Promise<{ address: string; ui: string | null }>;
  /** Resolves when the workflow bundle is written: the worker waits for it. */
  bundle: Promise<void>;
  /** The mail server that catches what is sent, and the address of its page. */
  mail: Promise<{ mailUrl: string; inbox: string }>;
}

/** A region with its data, and what its apps need. */
type PreparedRegion = Awaited<ReturnType<typeof prepareRegion>>;

/** A region that serves. */
export type StartedRegion = Awaited<ReturnType<typeof startRegion>>;

/** Prepares the regions' data one after another, because their logins share the server. */
export async function prepareRegions(start: Start, postgres: Promise<PostgresServer>): Promise<PreparedRegion[]> {
  const sources = await listSources(start.config);
  const server = await postgres;
  const startedAt = performance.now();
  const prepared: PreparedRegion[] = [];
  for (const [region, ports] of start.ports) {
    const ofRegion = sources.filter((source) => source.region === region);
    prepared.push(await prepareRegion(start, region, ports, server, ofRegion));
  }
  start.report(`the data is ready (${secondsSince(startedAt)})`);
  return prepared;
}

/** Prepares a region's data: database, migrations, imports, sample keys and webhooks. */
async function prepareRegion(
  { config, state, report: reportAll, issuer }: Start,
  region: Region,
  ports: RegionPorts,
  server: PostgresServer,
  sources: Awaited<ReturnType<typeof listSources>>,
) {
  const report = (line: string) => reportAll(`${region}: ${line}`);
  // With an external server and one region the database is the URL's own.
  const { database } = config.postgres ?? { database: 'org_api' };
  const isOwn = config.postgres !== null && config.regions.length === 1;
  const before = state.getMemory(region);
  const owner = await getRegionDatabase(server, isOwn ? database : `${database}_${region}`);
  const logins = buildLogins(owner, region, before);
  const roles = Object.keys(logins) as (keyof typeof logins)[];
  const roleLogins = roles.map((role) => ({ role, server: logins[role] }));
  const { applied, current } = await migrate({ owner, logins: roleLogins, report });
  if (applied.length === 0) report(`the schema is current (${current})`);

  const imported = await importSources(owner, sources, before, report);
  const receiver = `http://127.0.0.1:${ports.receiver}`;
  // By name: passkeys are bound to one, and browsers treat http://localhost as secure.
  const consoleUrl = `http://localhost:${ports.console}`;
  const { memory, provider } = await withDatabase(owner, async (database) => {
    const withKeys = await ensureSampleKeys(database, region, imported);
    const withWebhooks = await ensureSampleWebhooks(database, receiver, withKeys);
    const where = { region, issuer, consoleUrl };
    const memory = config.samples ? await ensureSampleProvider(database, where, withWebhooks) : withWebhooks;
    return { memory, provider: await findSampleProvider(database, where, memory) };
  });
  state.writeMemory(region, memory);
  const hasNewSamples = config.samples && before.imported.length === 0;
  return { region, ports, owner, logins, memory, receiver, consoleUrl, provider, hasNewSamples };
}

/** Starts the apps of a region, each as soon as it has what it needs, until all serve. */
export async function startRegion(
  { ports: allPorts, state, report, issuer }: Start,
  prepared: PreparedRegion,
  { redisUrl, temporal, bundle, mail }: RegionServers,
) {
  const { region, ports, memory, owner, logins, receiver, consoleUrl, provider } = prepared;
  const { organizations, webhooks } = memory;
  const api = `http://127.0.0.1:${ports.api}`;
  const namespace = getTemporalNamespace(region);
  /** Each resolves when an app ends, with a sentence. */
  const ends: Promise<string>[] = [];
  const start = async (name: RegionApp, settings: z.ZodObject, readyUrl: string, own: Record<string, string>) => {
    const folder = path.join(state.folder, region, name);
    const env = { ...passedSettings(settings), REGION: region, HOST: '127.0.0.1', ...own };
    const { exited } = await startApp({ region, name, folder, env, readyUrl, report });
    ends.push(exited.then((how) => `The ${region} ${name} ended by itself (${how})`));
  };
  const { mailUrl, inbox } = await mail;
  const isCaught = process.env.MAIL_URL === undefined && process.env.MAIL_URL_FILE === undefined;
  const mailFrom = { MAIL_FROM: process.env.MAIL_FROM ?? 'Organization console <no-reply@example.org>' };
  const keySettings = { KEY_PEPPERS: memory.keyPeppers, KEY_TAG_SECRETS: memory.keyTagSecrets };
  const deliverySettings = {
    TEMPORAL_NAMESPACE: namespace,
    WEBHOOK_SECRET_KEYS: memory.webhookSecretKeys,
    // The sample receiver stays reachable even when the caller sets other addresses.
    WEBHOOK_ALLOW: [stackAllow, process.env.WEBHOOK_ALLOW].filter(Boolean).join(','),
  };
  // For the message that names the region of a key.
  const baseUrls = [...allPorts].map(([code, { api }]) => [
    `BASE_URL_${code.toUpperCase()}`,
    `http://127.0.0.1:${api}`,
  ]);
  const secretEntries = webhooks.map(({ organizationId, secret }) => [organizationId, [secret]]);

  await allOrFirstFailure([
    allOrFirstFailure([temporal, bundle]).then(([{ address }]) =>
      start('worker', WorkerSettings, `http://127.0.0.1:${ports.workerMetrics}/readyz`, {
        ...deliverySettings,
        TEMPORAL_ADDRESS: address,
        WORKER_DATABASE_URL: formatPostgresUrl(logins.worker),
        ...mailFrom,
        ...(isCaught && { MAIL_URL: mailUrl }),
        CONSOLE_URL: consoleUrl,
        WORKFLOW_BUNDLE: workflowBundle,
        READY_AFTER: '0s',
        METRICS_PORT: `${ports.workerMetrics}`,
      }),
    ),
    temporal.then(({ address }) =>
      start('console', ConsoleSettings, `http://127.0.0.1:${ports.console}/readyz`, {
        ...keySettings,
        ...deliverySettings,
        TEMPORAL_ADDRESS: address,
        CONSOLE_DATABASE_URL: formatPostgresUrl(logins.console),
        ...mailFrom,
        CONSOLE_URL: consoleUrl,
        API_URL: api,
        PORT: `${ports.console}`,
        METRICS_PORT: `${ports.consoleMetrics}`,
      }),
    ),
    start('api', ApiSettings, `${api}/readyz`, {
      ...keySettings,
      ...(redisUrl !== null && { REDIS_URL: redisUrl }),
      ...Object.fromEntries(baseUrls),
      PORT: `${ports.api}`,
      METRICS_PORT: `${ports.metrics}`,
      API_DATABASE_URL: formatPostgresUrl(logins.api),
    }),
    start('receiver', ReceiverSettings, receiver, {
      PORT: `${ports.receiver}`,
      RECEIVER_SECRETS: JSON.stringify(Object.fromEntries(secretEntries)),
    }),
  ]);

  const sampleOwner = await withDatabase(owner, async (database) => {
    const [first] = organizations;
    if (prepared.hasNewSamples && first !== undefined) {
      await causeEvent({ database, organization: first }, 'client.started');
      report(`${region}: a first client of ${first.name} was started; its event is on the receiver's page`);
    }
    return createOwnerLink(database, consoleUrl, organizations);
  });
  const { address, ui } = await temporal;
  const stack: StackRegion = {
    region,
    api,
    console: consoleUrl,
    metrics: `http://127.0.0.1:${ports.metrics}`,
    databaseUrl: formatPostgresUrl(owner),
    platformDatabaseUrl: formatPostgresUrl(logins.platform),
    receiver,
    ...(redisUrl !== null && { redisUrl }),
    temporalAddress: address,
    temporalNamespace: namespace,
    ...(ui !== null && { temporalUi: ui }),
    ...(provider?.memberName != null && {
      openIdProvider: {
        url: `${issuer}/`,
        organizationId: provider.organizationId,
        shortName: provider.shortName,
        account: linkedAccount,
      },
    }),
    organizations,
  };
  return { stack, sampleOwner, ends, inbox: isCaught ? inbox : null, provider };
}

/**
 * Returns the settings of one app that the caller of `npm start` has set, by their names or as
 * `NAME_FILE`, for example `DELIVERY_SCHEDULE=1s,2s npm start`. No other variable of the caller
 * reaches the app, as in production.
 */
function passedSettings(schema: z.ZodObject): Record<string, string> {
  // No schema contains ALLOW_PLAINTEXT: it is read in addition to each of them.
  const names = [...Object.keys(schema.shape), 'ALLOW_PLAINTEXT'].flatMap((name) => [name, `${name}_FILE`]);
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}
