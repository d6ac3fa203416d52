import pg from 'pg';
import { openDatabase } from '#domain/open-database.ts';
import { createLog } from '#runtime/log.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { startApi } from '../../../apps/api/app.ts';
import { readConfig as readApiConfig } from '../../../apps/api/config.ts';
import { startConsole } from '../../../apps/console/app.ts';
import { readConfig as readConsoleConfig } from '../../../apps/console/config.ts';
import { cookieName } from '../../../apps/console/middleware/cookies.ts';
import { getFreePort } from '../../../apps/dev/servers/ports.ts';
import { migrate } from '../../../apps/migrate/migrate.ts';
import { type BenchKey, fillGrants, fillOrganizations, makeSecrets } from '../reads/region.ts';
import { asOwner, type BenchServers } from '../servers.ts';
import { addDueDeliveries, fillRows, fillWebhooks } from './fill.ts';
import { type FilledOrganization, fillOrganization, preparePast, signIn } from './fill-organization.ts';

/** A region with a given number of rows, and the apps on it. */
export interface GrownRegion {
  rows: number;
  owner: pg.Client;
  /** The worker's login, with generic plans as in production. */
  worker: pg.Client;
  apiUrl: string;
  /** Returns the next key of one organization: each may be used 120 times a minute. */
  nextKey(): BenchKey;
  /** Equal in each region: 1,000 audit entries and deliveries. */
  organization: FilledOrganization;
  consoleUrl: string;
  cookie: string;
}

const grantsEach = 40;
/** Organizations with due deliveries, ten for each webhook. */
const busyOrganizations = 20;
const dueEach = 30;
const measured = { lines: 1_000, deliveries: 1_000 };
const logins = ['api', 'worker', 'console'] as const;

/** Creates a database, fills it, and starts API and console on it. `servers` stops them. */
export async function growRegion(
  servers: BenchServers,
  redisUrl: string,
  rows: number,
  report: (line: string) => void,
): Promise<GrownRegion> {
  const name = `bench_${rows}`;
  await asOwner(servers.postgres.adminUrl, (admin) => admin.query(`create database ${name} template template0`));
  const ownerUrl = new URL(servers.postgres.adminUrl);
  ownerUrl.pathname = name;
  const buildUrl = (role: string) => {
    const url = new URL(ownerUrl);
    Object.assign(url, { username: `${name}_${role}`, password: 'bench' });
    return url.href;
  };
  await migrate({
    owner: parsePostgresUrl(ownerUrl.href),
    logins: logins.map((role) => ({ role, server: parsePostgresUrl(buildUrl(role)) })),
  });

  async function connect(url: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: url, options: '-c plan_cache_mode=force_generic_plan' });
    await client.connect();
    servers.onStop(() => client.end());
    return client;
  }
  const owner = await connect(ownerUrl.href);
  const secrets = makeSecrets();
  const [consolePort, apiPort] = [await getFreePort(), await getFreePort()];
  const consoleUrl = `http://localhost:${consolePort}`;
  const apiUrl = `http://127.0.0.1:${apiPort}`;
  const common = {
    REGION: secrets.region,
    KEY_PEPPERS: secrets.peppers.map(({ version, secret }) => `${version}:${secret.toString('base64')}`).join(','),
    KEY_TAG_SECRETS: secrets.tagSecrets.map((secret) => secret.toString('base64')).join(','),
    HOST: '127.0.0.1',
    METRICS_PORT: '0',
    DRAIN_DELAY_MS: '0',
    LOG_LEVEL: 'silent',
  };
  const consoleConfig = readConsoleConfig({
    ...common,
    CONSOLE_DATABASE_URL: buildUrl('console'),
    CONSOLE_URL: consoleUrl,
    API_URL: apiUrl,
    WEBHOOK_SECRET_KEYS: `1:${Buffer.alloc(32, 7).toString('base64')}`,
    PORT: String(consolePort),
  });
  const apiConfig = readApiConfig({
    ...common,
    API_DATABASE_URL: buildUrl('api'),
    REDIS_URL: redisUrl,
    PORT: String(apiPort),
  });

  const keys = await fillOrganizations(owner, secrets);
  await fillGrants(owner, grantsEach, 0);
  await preparePast(owner);
  await fillWebhooks(owner);
  await fillRows(owner, rows, report);
  const database = await openDatabase({
    server: parsePostgresUrl(ownerUrl.href),
    applicationName: 'bench',
    poolMax: 2,
  });
  const organization = await fillOrganization(owner, database, consoleConfig, measured);
  const session = await signIn(database, [organization.id], consoleConfig);
  await database.close();
  const busy = [...new Set(keys.map(({ organizationId }) => organizationId))].slice(0, busyOrganizations);
  await addDueDeliveries(owner, busy, dueEach);
  report(`${rows.toLocaleString('en')} rows each are inserted, analyzing`);
  await owner.query('vacuum (freeze, analyze)');
  await owner.query('checkpoint');

  const log = (app: string) => createLog({ level: 'silent', name: app, region: secrets.region });
  const console = await startConsole(consoleConfig, log('console'));
  servers.onStop(() => console.stop());
  const api = await startApi(apiConfig, log('api'));
  servers.onStop(() => api.stop());
  const ownKeys = keys.filter(({ organizationId }) => organizationId === keys[0]?.organizationId);
  let used = 0;
  return {
    rows,
    owner,
    worker: await connect(buildUrl('worker')),
    apiUrl,
    nextKey: () => ownKeys[used++ % ownKeys.length] as BenchKey,
    organization,
    consoleUrl,
    cookie: `${cookieName('session', consoleUrl)}=${session}`,
  };
}
