/** docs/operations/rotate-secrets.md, with its own commands, under a running API and worker. */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { spawnApp } from '#test/child-app.ts';
import { mountSecret } from '#test/mounted-secret.ts';
import { callOrgctl, emptyFolder } from '#test/orgctl.ts';
import { startReceiver } from '#test/receiver.ts';
import { testKeySettings, testWebhookSecretKeys } from '#test/secrets.ts';
import { setupDatabase, startTestApi } from '#test/setup.ts';
import { startTestWorker } from '#test/worker.ts';
import { api as apiLabels, worker as workerLabels } from '../charts/alerts-data.ts';
import { expectQuietAlerts } from './alerts.ts';
import { carryOut, readSection, without } from './page.ts';

const page = 'rotate-secrets.md';
const patient = { timeout: 60_000, interval: 100 };
const kubernetes = /^kubectl .*(pod orgctl|pod\/orgctl|-f orgctl\.yaml|create secret|delete secret)/;
const newBytes = () => randomBytes(32).toString('base64');

it('rotates every secret while a key reads and events are delivered, and ends with all alerts quiet', {
  timeout: 240_000,
}, async () => {
  const t = await arrange();
  const { secret, owner, database, redisUser } = t;
  await t.expectWorking();

  for (const [name, added] of [
    ['KEY_PEPPERS', `2:${newBytes()}`],
    ['KEY_TAG_SECRETS', newBytes()],
    ['WEBHOOK_SECRET_KEYS', `2:${newBytes()}`],
  ] as const) {
    await secret.change({ [name]: `${secret.values[name]},${added}` });
    await secret.change({ [name]: `${added},${secret.values[name]?.split(',')[0]}` });
    await t.expectWorking();
  }
  const versions: unknown[] = [];
  await carryOut(readSection(page, 'KEY_PEPPERS'), [
    [/^# us-values\.yaml/, without('no operator runs')],
    [/^select /, async (sql) => versions.push(...(await owner.pool.query(sql)).rows)],
  ]);
  expect(versions).toEqual([{ pepper_version: 1, count: '1' }]); // so the old pepper stays
  await carryOut(readSection(page, 'WEBHOOK_SECRET_KEYS'), [
    [kubernetes, without('orgctl runs here')],
    [/^# us-values\.yaml/, without('no operator runs')],
    [/^orgctl secrets (reseal|status)$/, t.orgctl],
  ]);
  await secret.change({ WEBHOOK_SECRET_KEYS: secret.values.WEBHOOK_SECRET_KEYS?.split(',')[0] ?? '' });
  await t.expectWorking();

  const first = new URL(secret.values.API_DATABASE_URL ?? '').username;
  const API_DATABASE_URL = t.urlOf(`${first}_2`);
  await carryOut(readSection(page, 'API_DATABASE_URL, WORKER_DATABASE_URL, CONSOLE_DATABASE_URL'), [
    [kubernetes, without('the Secret is a folder')],
    [/exec orgctl -- node apps\/migrate\/main\.ts$/, () => t.migrate(API_DATABASE_URL)],
    [/^kubectl .* patch secret org-api-us /, () => secret.change({ API_DATABASE_URL })],
    [
      /^revoke connect /,
      async (sql) => {
        // Connections of the first login end within 15 minutes; here they are ended.
        await owner.pool.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [first]);
        for (const statement of sql.split('\n'))
          await owner.pool.query(
            statement.replace('database org_api ', `database ${database.name} `).replace('org_api_api', first),
          );
      },
    ],
  ]);
  await t.expectWorking();

  const [OLD, NEW] = [new URL(secret.values.REDIS_URL ?? '').password, randomBytes(12).toString('hex')];
  const setUser = async (command: string) => {
    const [, rule = ''] = /acl setuser default "(.*)"$/.exec(command) ?? [];
    if (rule.startsWith('<')) await secret.change({ REDIS_URL: t.redisUrl(NEW) });
    await t.redis.call('acl', 'setuser', redisUser, rule.replace('$NEW', NEW).replace('$OLD', OLD));
  };
  await carryOut(readSection(page, 'REDIS_URL'), [[/valkey-cli .* acl setuser default /, setUser]]);
  await t.redis.call('client', 'kill', 'user', redisUser);
  await t.expectWorking();

  await expectQuietAlerts([
    { labels: apiLabels, metricsUrl: t.api.metricsUrl },
    { labels: workerLabels, metricsUrl: t.worker.metricsUrl },
  ]);
});

/** An API and a worker whose Secret is mounted, a key that reads and a webhook that receives. */
async function arrange() {
  const { database, owner, make } = await setupDatabase();
  const suffix = randomBytes(4).toString('hex');
  const [apiUser, redisUser] = [`org_api_login_${suffix}`, `rotated-${suffix}`];
  const urlOf = (username: string) =>
    Object.assign(new URL(database.urls.api), { username, password: randomBytes(12).toString('hex') }).href;
  const migrate = async (API_DATABASE_URL: string): Promise<void> => {
    const migration = spawnApp('migrate', { REGION: 'us', DATABASE_URL: database.ownerUrl, API_DATABASE_URL });
    expect(await migration.ended, migration.lines.join('\n')).toMatchObject({ code: 0 });
  };
  const redis = new Redis(inject('redisUrl'));
  const redisUrl = (password: string) =>
    Object.assign(new URL(inject('redisUrl')), { username: redisUser, password }).href;
  await redis.call('acl', 'setuser', redisUser, 'on', '>first', '~*', '&*', '+@all');
  onTestFinished(async () => {
    await redis.call('acl', 'deluser', redisUser);
    redis.disconnect();
    const drop = `drop owned by ${apiUser}_2; drop role ${apiUser}_2`;
    await owner.pool.query(drop).catch(() => {});
  });
  const ofApi = { ...testKeySettings, API_DATABASE_URL: urlOf(apiUser), REDIS_URL: redisUrl('first') };
  await migrate(ofApi.API_DATABASE_URL);
  const values: Record<string, string> = { ...ofApi, WEBHOOK_SECRET_KEYS: testWebhookSecretKeys };
  const mounted = mountSecret(values);
  const filesOf = (names: string[]) =>
    Object.fromEntries(
      names.flatMap((name) => [
        [name, ''],
        [`${name}_FILE`, mounted.settings[`${name}_FILE`] ?? ''],
      ]),
    );
  const receiver = await startReceiver();
  const creator = await make.member();
  await make.webhook({ orgId: creator.orgId, url: receiver.url });
  const { key } = await make.apiKey({ creator });
  const api = await startTestApi(database, filesOf(Object.keys(ofApi)));
  const worker = await startTestWorker(database, filesOf(['WEBHOOK_SECRET_KEYS']));
  const metricsOf = async () =>
    (
      await Promise.all([api, worker].map(async ({ metricsUrl }) => (await fetch(`${metricsUrl}/metrics`)).text()))
    ).join();
  const changesOf = async (name: string) => {
    const found = [
      ...(await metricsOf()).matchAll(new RegExp(`^org_api_setting_changes_total{setting="${name}"} (\\d+)`, 'gm')),
    ];
    return found.reduce((sum, [, count]) => sum + Number(count), 0);
  };

  return {
    owner,
    database,
    api,
    worker,
    redis,
    redisUser,
    redisUrl,
    urlOf,
    migrate,
    secret: {
      values,
      /** Changes the Secret, and waits until its process has the value, as the guide says. */
      async change(changed: Record<string, string>): Promise<void> {
        const [name = ''] = Object.keys(changed);
        const before = await changesOf(name);
        Object.assign(values, changed);
        mounted.replace(values);
        await vi.waitFor(async () => expect(await changesOf(name)).toBe(before + 1), patient);
      },
    },
    async orgctl(command: string): Promise<void> {
      const env = {
        DATABASE_URL: database.ownerUrl,
        REGION: 'us',
        ORG_API_STATE: emptyFolder(),
        WEBHOOK_SECRET_KEYS: values.WEBHOOK_SECRET_KEYS ?? '',
      };
      expect(await callOrgctl(env, command.split(' ').slice(1)), command).toMatchObject({ code: 0 });
    },
    /** Expects that the key reads with the exact limit, and that a new event arrives. */
    async expectWorking(): Promise<void> {
      expect((await api.get(`/v1/orgs/${creator.orgId}`, { key })).status).toBe(200);
      const before = receiver.received.length;
      await make.grant({ professional: creator });
      await vi.waitFor(() => expect(receiver.received.length).toBeGreaterThan(before), patient);
      await vi.waitFor(async () => expect(await metricsOf()).toContain('org_api_limiter_without_redis 0\n'), patient);
    },
  };
}
