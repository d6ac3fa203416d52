/** A region whose Secrets are in a real API server, and its apps, which read them from files. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { CoreV1Api, CustomObjectsApi } from '@kubernetes/client-node';
import pg from 'pg';
import { expect, inject, onTestFinished, vi } from 'vitest';
import { scopes as allScopes } from '#domain/contract/scopes.ts';
import { createKey } from '#domain/keys/create.ts';
import { revokeKey } from '#domain/keys/revoke.ts';
import { openDatabase } from '#domain/open-database.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import { createLog } from '#runtime/log.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { keyPeppers, keyTagSecrets, webhookSecretKeys } from '#runtime/settings/types.ts';
import { type ApiServer, createNamespace, kubernetesBin } from '#test/api-server.ts';
import { startApp } from '#test/child-app.ts';
import { childEnvironment } from '#test/child-environment.ts';
import type { TestDatabase } from '#test/database.ts';
import { createFactories } from '#test/make.ts';
import { mountSecret } from '#test/mounted-secret.ts';
import { startReceiver } from '#test/receiver.ts';
import { getStateFolder, makeRunFolder, removeRunFolder } from '#test/run-folder.ts';
import { testAllowList } from '#test/secrets.ts';
import { consoleEnvironment, startTestApi } from '#test/setup.ts';
import { allowSockets, guardSockets } from '#test/socket-guard.ts';
import { makeNamespace } from '#test/temporal.ts';
import { frontName, startTemporalFront } from '#test/temporal-front.ts';
import { startTestWorker } from '#test/worker.ts';
import { startPostgres } from '../../apps/dev/servers/postgres.ts';
import { startRedis } from '../../apps/dev/servers/redis.ts';
import { startOperator } from '../../apps/operator/app.ts';
import { readConfig } from '../../apps/operator/config.ts';
import { kinds, type Region } from '../../apps/operator/kube/resources.ts';
import { carryOut, readSection, without } from '../operations/page.ts';
import { openShell } from '../operations/shell.ts';
import { regionIn } from './region.ts';

export const patient = { timeout: 60_000, interval: 100 };
const root = fileURLToPath(new URL('../..', import.meta.url));

/** Sets the region up by the pages of the guide: a key that reads, and a webhook that receives. */
export async function arrangeRotation(server: ApiServer) {
  const folder = makeRunFolder();
  onTestFinished(() => removeRunFolder(folder));
  const options = { stateFolder: getStateFolder(folder), durable: false, report: () => {} };
  const postgres = await startPostgres(options);
  const redis = await startRedis(options);
  if (redis === null) throw new Error('there is no Redis');
  allowSockets('PostgreSQL', postgres.adminUrl);
  allowSockets('Redis', redis.url);
  const TEMPORAL_NAMESPACE = await makeNamespace('rotated');
  const front = await startTemporalFront(inject('temporalAddress'));
  allowSockets('Temporal', `https://${front.address}`);
  const NS = await createNamespace(server);
  const files = { KUBECONFIG: path.join(folder, 'kubeconfig.json'), POD: path.join(folder, 'pod.env') };
  writeFileSync(files.KUBECONFIG, server.kubeConfig.exportConfig());
  const run = openShell({
    ...childEnvironment,
    PATH: [path.dirname(process.execPath), kubernetesBin, childEnvironment.PATH].join(':'),
    ...files,
    HOME: folder, // where kubectl keeps what it found
    NS,
    RELEASE: 'us',
    NAME: 'us-org-api',
  });
  /** Runs a command of a page, with the servers of this test. */
  const shell = (command: string) =>
    run(
      command
        .replace('org-api-us-rw.$NS.svc:5432', `127.0.0.1:${postgres.port}`)
        .replace('temporal-frontend.temporal.svc:7233', front.address)
        .replace('valkey-us.$NS.svc:6379', `127.0.0.1:${redis.port}`)
        .replace('kubectl -n $NS exec -i deploy/valkey-us -- valkey-cli', `redis-cli -p ${redis.port}`),
    );
  await run(`cd ${root}`);
  await run('orgctl() { (set -a; . "$POD"; node apps/orgctl/main.ts "$@"); }');
  const core = server.kubeConfig.makeApiClient(CoreV1Api);
  async function readSecret(name: string): Promise<Record<string, string>> {
    const { data = {} } = await core.readNamespacedSecret({ namespace: NS, name });
    return Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]),
    );
  }
  const readRelease = () => readSecret('org-api-us');
  const asAdmin = (text: string, values: unknown[] = []) => query(postgres.adminUrl, text, values);

  await carryOut(readSection('prepare-postgresql.md', 'Set up the server'), [
    [/^kubectl -n \$NS create secret generic org-api-us-owner /, shell],
    [/^kubectl|^# postgresql\.yaml/, without('CloudNativePG does not run')],
  ]);
  const { password } = await readSecret('org-api-us-owner');
  await asAdmin(`create role org_api_owner login createrole password '${password}'`);
  await asAdmin('create database org_api owner org_api_owner');
  await carryOut(readSection('prepare-redis.md', 'Set up the server'), [
    [/^kubectl -n \$NS create secret generic valkey-us-users /, shell],
    [/^helm |^# valkey-values\.yaml/, without('Redis runs on this machine')],
  ]);
  await run(`redis-cli -p ${redis.port} acl setuser default ">${(await readSecret('valkey-us-users')).default}"`);
  await carryOut(readSection('install.md', 'Create the secrets'), [[/^(url\(\)|\w+_PASSWORD=|kubectl )/, shell]]);
  await carryOut(readSection('run-the-operator.md', 'Install it'), [
    [/^kubectl -n \$NS patch secret org-api-us /, shell],
    [/^helm |^kubectl get |^# /, without('the charts are tested elsewhere')],
  ]);
  /** Writes the files of Temporal's Secret, where the commands of the pages read them. */
  function writeCertificates(files: Record<string, string>): void {
    for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
  }
  const inFolder = (command: string) => shell(`(cd ${folder} && ${command})`);
  writeCertificates({ 'ca.crt': front.ca, 'tls.crt': front.client.cert, 'tls.key': front.client.key });
  front.letIn(['first']);
  await shell('TEMPORAL_API_KEY=first');
  await carryOut(readSection('prepare-temporal.md', 'Connect by TLS or an API key'), [
    [/^kubectl .* create secret generic org-api-us-temporal /, inFolder],
    [/^# us-values\.yaml/, without('the apps get the settings of these values below')],
  ]);
  const platform =
    '{\\"stringData\\":{\\"PLATFORM_DATABASE_URL\\":\\"$(url org_api_plat "$(openssl rand -hex 24)")\\"}}';
  await shell(`kubectl -n $NS patch secret org-api-us -p "${platform}"`);

  /** Gives the next command of the pod `orgctl` its environment, as a new pod has it. */
  async function recreatePod(): Promise<void> {
    const next = await readSecret('org-api-us-next').catch(() => ({}));
    const own = {
      REGION: 'us',
      TEMPORAL_ADDRESS: inject('temporalAddress'),
      TEMPORAL_NAMESPACE,
      WEBHOOK_ALLOW: '10.96.0.81',
      CONSOLE_URL: 'https://console.us.example.com',
      ORG_API_STATE: path.join(folder, 'none'),
    };
    const lines = Object.entries({ ...own, ...(await readRelease()), ...next }).map(
      ([name, value]) => `${name}='${value}'\n`,
    );
    writeFileSync(files.POD, lines.join(''), { mode: 0o600 });
  }
  const migrate = () => shell('(set -a; . "$POD"; node apps/migrate/main.ts)');
  await recreatePod();
  await migrate();

  const first = await readRelease();
  const owner = await openDatabase({
    server: parsePostgresUrl(Object.assign(new URL(postgres.adminUrl), { pathname: 'org_api' }).href),
    applicationName: 'test',
    poolMax: 3,
  });
  onTestFinished(() => owner.close());
  const make = createFactories(owner);
  const creator = await make.member();
  const receiver = await startReceiver();
  await createWebhook(
    owner,
    {
      organizationId: creator.orgId,
      by: 'orgctl',
      url: `${receiver.url}/`,
      eventTypes: ['client.started'],
      description: '',
    },
    { allow: testAllowList, sealingKeys: webhookSecretKeys.parse(first.WEBHOOK_SECRET_KEYS ?? '') },
  );
  let key = { id: '', key: '' };
  async function replaceKey(): Promise<void> {
    const before = key.id;
    const { KEY_PEPPERS = '', KEY_TAG_SECRETS = '' } = await readRelease();
    const secrets = {
      region: 'us' as const,
      peppers: keyPeppers.parse(KEY_PEPPERS),
      tagSecrets: keyTagSecrets.parse(KEY_TAG_SECRETS),
    };
    const fields = { organizationId: creator.orgId, creatorId: creator.userId, label: 'test', expiresAt: null };
    key = await createKey(owner, { ...fields, scopes: allScopes, by: 'orgctl' }, secrets);
    if (before !== '') await revokeKey(owner, { organizationId: creator.orgId, keyId: before, by: 'orgctl' });
  }
  await replaceKey();

  const mounted = mountSecret(first);
  const listFiles = (names: string[]) =>
    Object.fromEntries(
      names.flatMap((name) => [
        [name, ''],
        [`${name}_FILE`, mounted.settings[`${name}_FILE`] ?? ''],
      ]),
    );
  const database = buildTestDatabase(first);
  const api = await startTestApi(
    database,
    listFiles(['API_DATABASE_URL', 'REDIS_URL', 'KEY_PEPPERS', 'KEY_TAG_SECRETS']),
  );
  /** The settings of Temporal's Secret, by its keys. */
  const ofTemporal = {
    'ca.crt': 'TEMPORAL_TLS_CA',
    'tls.crt': 'TEMPORAL_TLS_CERT',
    'tls.key': 'TEMPORAL_TLS_KEY',
    TEMPORAL_API_KEY: 'TEMPORAL_API_KEY',
  };
  async function readTemporalSettings(): Promise<Record<string, string>> {
    const secret = await readSecret('org-api-us-temporal');
    return Object.fromEntries(Object.entries(ofTemporal).map(([key, name]) => [name, secret[key] ?? '']));
  }
  const mountedTemporal = mountSecret(await readTemporalSettings());
  const startWorker = () =>
    startTestWorker(database, {
      TEMPORAL_NAMESPACE,
      TEMPORAL_ADDRESS: front.address,
      TEMPORAL_TLS: 'true',
      TEMPORAL_TLS_SERVER_NAME: frontName,
      ...mountedTemporal.settings,
      ...listFiles(['WORKER_DATABASE_URL', 'WEBHOOK_SECRET_KEYS']),
    });
  let worker = await startWorker();
  const ofConsole = ['CONSOLE_DATABASE_URL', 'KEY_PEPPERS', 'KEY_TAG_SECRETS', 'WEBHOOK_SECRET_KEYS'];
  const console = await startApp('console', {
    ...consoleEnvironment(database, 'http://localhost:1'),
    ...listFiles(ofConsole),
  });
  // At 127.0.0.1 the console leads to its own URL, which is no address here.
  const consoleUrl = console.url.replace('127.0.0.1', 'localhost');
  allowSockets('test', consoleUrl);
  await server.apply(
    regionIn(NS, {
      database: { secretRef: { name: 'org-api-us' } },
      temporal: {
        address: front.address,
        namespace: TEMPORAL_NAMESPACE,
        tls: true,
        tlsServerName: frontName,
        caSecretRef: { name: 'org-api-us-temporal' },
        certificateSecretRef: { name: 'org-api-us-temporal' },
        certificateKeySecretRef: { name: 'org-api-us-temporal' },
        apiKeySecretRef: { name: 'org-api-us-temporal' },
      },
      webhooks: { secretKeysRef: { name: 'org-api-us' } },
    }),
  );
  let operatorAheadMs = 0;
  guardSockets(onTestFinished, 'operator');
  const operator = await startOperator(
    readConfig({
      REGION: 'us',
      OPERATOR_NAMESPACE: NS,
      KUBECONFIG: files.KUBECONFIG,
      HOST: '127.0.0.1',
      METRICS_PORT: '0',
    }),
    createLog({ level: 'silent', name: 'operator', region: 'us' }),
    () => performance.now() + operatorAheadMs,
  );
  onTestFinished(() => operator.stop());
  allowSockets('test', operator.metricsUrl);
  const custom = server.kubeConfig.makeApiClient(CustomObjectsApi);
  const { group, version, plural } = kinds.Region;
  async function isRegionReady(): Promise<boolean> {
    const object = { group, version, plural, namespace: NS, name: 'region' };
    const { status } = (await custom.getNamespacedCustomObject(object)) as Region;
    return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
  }
  await vi.waitFor(async () => expect(await isRegionReady()).toBe(true), patient);

  const readMetrics = async ({ metricsUrl }: { metricsUrl: string }) => (await fetch(`${metricsUrl}/metrics`)).text();
  /** Returns when each process read its value of a setting, as the first query of the page does. */
  async function listReadTimes(setting: string): Promise<number[]> {
    const name = setting === 'OPERATOR_DATABASE_URL' ? 'DATABASE_URL' : setting;
    const pages = await Promise.all([api, worker, console, operator].map(readMetrics));
    const pattern = new RegExp(`^org_api_setting_read_timestamp_seconds\\{.*setting="${name}".*\\} (\\S+)$`, 'm');
    return pages.flatMap((page) => (pattern.exec(page) ?? []).slice(1).map(Number));
  }

  return {
    shell,
    owner,
    api,
    front,
    metricsOfWorker: () => worker.metricsUrl,
    metricsOfOperator: operator.metricsUrl,
    writeCertificates,
    recreatePod,
    migrate,
    replaceKey,
    readSecret,
    isRegionReady,
    /** Runs a command that changes the Secret, and waits until every process has the value. */
    async change(command: string): Promise<void> {
      const before = await readRelease();
      await shell(command);
      const after = await readRelease();
      const changed = Object.keys(after).filter((name) => after[name] !== before[name]);
      expect(changed, command).toHaveLength(1);
      const changedAt = Date.now() / 1_000;
      mounted.replace(after);
      operatorAheadMs += 300_000;
      const [setting = ''] = changed;
      if (setting === 'PLATFORM_DATABASE_URL') return void (await query(after[setting] ?? '', 'select 1'));
      await vi.waitFor(async () => {
        const times = await listReadTimes(setting);
        expect(times.length).toBeGreaterThan(0);
        expect(
          times.filter((time) => time < changedAt),
          setting,
        ).toEqual([]);
      }, patient);
    },
    /** Changes Temporal's Secret: the pods' files are replaced, and it is time for the operator to read it. */
    async changeTemporalSecret(command: string): Promise<void> {
      await inFolder(command);
      mountedTemporal.replace(await readTemporalSettings());
      operatorAheadMs += 300_000;
    },
    /** Starts a worker with the files of now, and stops the one before, as a rollout does. */
    async restartWorker(): Promise<void> {
      const before = worker;
      worker = await startWorker();
      await vi.waitFor(async () => expect((await fetch(`${worker.metricsUrl}/readyz`)).status).toBe(200), patient);
      await before.stop();
    },
    /** Waits until worker and operator have called Temporal since now; a poll of the worker lasts a minute. */
    async expectCallsToTemporal(): Promise<void> {
      const before = front.calls.length;
      const calls = [expect.stringMatching(/^Poll/), 'DescribeNamespace'];
      const twoPolls = { ...patient, timeout: 150_000 };
      await vi.waitFor(() => expect(front.calls.slice(before)).toEqual(expect.arrayContaining(calls)), twoPolls);
    },
    isRejectedByOperator: async () =>
      /^org_api_setting_rejected\{.*setting="TEMPORAL_ADDRESS".*\} 1$/m.test(await readMetrics(operator)),
    /** Changes the password of the owner's Secret, which CloudNativePG follows. */
    async changeOwnersPassword(command: string): Promise<void> {
      await shell(command);
      await asAdmin(`alter role org_api_owner password '${(await readSecret('org-api-us-owner')).password}'`);
    },
    endConnections: (login: string) =>
      asAdmin('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [login]),
    endRedisConnections: () => shell(`redis-cli -p ${redis.port} --user default -a "$NEW" client kill type normal`),
    asOwner: async (statement: string) => query((await readRelease()).DATABASE_URL ?? '', statement),
    /** Expects that the key reads with the exact limit, that a new event arrives, and that the others work. */
    async expectWorking(): Promise<void> {
      expect((await api.get(`/v1/orgs/${creator.orgId}`, { key: key.key })).status).toBe(200);
      const before = receiver.received.length;
      await make.grant({ professional: creator });
      await vi.waitFor(() => expect(receiver.received.length).toBeGreaterThan(before), patient);
      await vi.waitFor(async () => {
        expect(await readMetrics(api)).toContain('org_api_limiter_without_redis 0\n');
        expect((await fetch(`${consoleUrl}/sign-in`)).status).toBe(200);
        expect(await isRegionReady()).toBe(true);
      }, patient);
    },
  };
}

function buildTestDatabase(secret: Record<string, string>): TestDatabase {
  const roles = ['api', 'worker', 'console', 'operator', 'platform'] as const;
  const urls = Object.fromEntries(roles.map((role) => [role, secret[`${role.toUpperCase()}_DATABASE_URL`] ?? '']));
  const ownerUrl = secret.DATABASE_URL ?? '';
  return { name: 'org_api', ownerUrl, urls: urls as TestDatabase['urls'], drop: async () => {} };
}

async function query(url: string, text: string, values: unknown[] = []): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(text, values);
  } finally {
    await client.end();
  }
}
