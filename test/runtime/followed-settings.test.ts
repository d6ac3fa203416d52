/**
 * Settings that are read again while a process runs: a new value is parsed and tried before it
 * replaces the old one, in every app and for every setting.
 */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import type { DestinationStream } from 'pino';
import { Registry } from 'prom-client';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import type { LoginRole } from '#domain/db/login-rights.ts';
import { createLog } from '#runtime/log.ts';
import type { FollowedSettings } from '#runtime/settings/follow.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { TriedValue } from '#runtime/settings/tried-value.ts';
import { reportSettings } from '#runtime/settings/watch.ts';
import { mountSecret } from '#test/mounted-secret.ts';
import { testKeySettings, testWebhookSecretKeys } from '#test/secrets.ts';
import { setupDatabase, shareInstallation } from '#test/setup.ts';
import { frontName, startTemporalFront } from '#test/temporal-front.ts';
import { testNamespace, workerEnvironment } from '#test/worker.ts';
import { readConfig as readApi } from '../../apps/api/config.ts';
import { readConfig as readConsole } from '../../apps/console/config.ts';
import { ensureLogin } from '../../apps/migrate/logins.ts';
import { readConfig as readWorker } from '../../apps/worker/config.ts';

const shared = shareInstallation(async (onFinished) => {
  const front = await startTemporalFront(inject('temporalAddress'), onFinished);
  front.letIn(['first-key', 'second-key']);
  return { ...(await setupDatabase(onFinished)), front };
});

/** A value in use, one that may replace it, and values that must not, by what is wrong with them. */
interface Values {
  old: string;
  next: string;
  bad: Record<string, string>;
}

const keyring = (bytes: number): Values => {
  const key = (version: number) => `${version}:${randomBytes(bytes).toString('base64')}`;
  const old = key(1);
  const next = `${key(2)},${old}`;
  return {
    old,
    next,
    bad: {
      malformed: 'hunter2',
      'the same version twice': `${key(1)},${old}`,
      'another secret under a version in use': `${key(2)},${key(1)}`,
      'without the first one in use': key(2),
      empty: '',
    },
  };
};

async function postgresLogin(role: LoginRole): Promise<Values> {
  const { database, owner } = shared();
  const user = `org_api_login_${randomBytes(4).toString('hex')}`;
  const url = new URL(database.urls[role as 'api']);
  const old = url.href;
  Object.assign(url, { username: user, password: 'the-next-password' });
  const next = url.href;
  const client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  await ensureLogin(client, { role, server: parsePostgresUrl(next) });
  await client.end();
  onTestFinished(async () => void (await owner.pool.query(`drop owned by ${user}; drop role ${user}`)));
  const changed = (part: Partial<URL>) => Object.assign(new URL(next), part).href;
  return {
    old,
    next,
    bad: {
      'not percent-encoded': next.replace('the-next-password', 'hunter%zz'),
      'no URL': 'hunter2',
      'a wrong password': changed({ password: 'hunter2' }),
      'another server': changed({ port: '1' }),
      'the login of another app': database.urls[role === 'api' ? 'worker' : 'api'],
      'another database': changed({ pathname: '/hunter2' }),
      'unverified TLS': changed({ search: '?sslmode=require' }),
      'a parameter that is not read': changed({ search: '?options=hunter2' }),
      empty: '',
    },
  };
}

async function redisLogin(): Promise<Values> {
  const redis = new Redis(inject('redisUrl'));
  const user = `followed-${randomBytes(4).toString('hex')}`;
  await redis.call('acl', 'setuser', user, 'on', '>the-next-password', '~*', '&*', '+@all');
  onTestFinished(async () => {
    await redis.call('acl', 'deluser', user);
    redis.disconnect();
  });
  const next = Object.assign(new URL(inject('redisUrl')), { username: user, password: 'the-next-password' }).href;
  return {
    old: inject('redisUrl'),
    next,
    bad: {
      'not percent-encoded': next.replace('the-next-password', 'pa%zzword'),
      'a wrong password': next.replace('the-next-password', 'hunter2'),
      'another server': next.replace(/:\d+$/, ':1'),
      'an option of the driver': `${next}?connectTimeout=1`,
      empty: '',
    },
  };
}

const temporalKey = (): Values => ({
  old: 'first-key',
  next: 'second-key',
  bad: { 'two words': 'hunter2 hunter3', 'a key that the server rejects': 'hunter2', empty: '' },
});

const settings: Record<string, (role: LoginRole) => Values | Promise<Values>> = {
  API_DATABASE_URL: postgresLogin,
  CONSOLE_DATABASE_URL: postgresLogin,
  WORKER_DATABASE_URL: postgresLogin,
  REDIS_URL: redisLogin,
  KEY_PEPPERS: () => keyring(16),
  KEY_TAG_SECRETS: () => {
    const [old, next] = [randomBytes(16), randomBytes(16)].map((secret) => secret.toString('base64')) as [
      string,
      string,
    ];
    return {
      old,
      next: `${next},${old}`,
      bad: { malformed: 'hunter2', 'without the first one in use': next, empty: '' },
    };
  },
  WEBHOOK_SECRET_KEYS: () => keyring(32),
  TEMPORAL_API_KEY: temporalKey,
  MAIL_URL: () => ({
    old: 'smtps://user:first@mail.example.org:465',
    next: 'smtps://user:second@mail.example.org:465',
    bad: { malformed: 'hunter2', 'another protocol': 'https://hunter2@mail.example.org', empty: '' },
  }),
};

interface App {
  read: (environment: Record<string, string>) => { followed: FollowedSettings<unknown> };
  environment: () => Record<string, string>;
  followed: string[];
}

const temporalBehindTls = ({ front } = shared()) => ({
  TEMPORAL_ADDRESS: front.address,
  TEMPORAL_TLS: 'true',
  TEMPORAL_TLS_SERVER_NAME: frontName,
  TEMPORAL_TLS_CA: front.ca,
  TEMPORAL_TLS_CERT: front.client.cert,
  TEMPORAL_TLS_KEY: front.client.key,
});
const apps: Record<'api' | 'worker' | 'console', App> = {
  api: {
    read: readApi,
    environment: () => ({ REGION: 'us', API_DATABASE_URL: shared().database.urls.api, ...testKeySettings }),
    followed: ['API_DATABASE_URL', 'REDIS_URL', 'KEY_PEPPERS', 'KEY_TAG_SECRETS'],
  },
  worker: {
    read: readWorker,
    environment: () => ({
      ...workerEnvironment(shared().database),
      ...temporalBehindTls(),
      MAIL_FROM: 'Org <no-reply@example.org>',
      CONSOLE_URL: 'https://console.example.com',
    }),
    followed: ['WORKER_DATABASE_URL', 'WEBHOOK_SECRET_KEYS', 'TEMPORAL_API_KEY', 'MAIL_URL'],
  },
  console: {
    read: readConsole,
    environment: () => ({
      ...testKeySettings,
      ...temporalBehindTls(),
      REGION: 'us',
      TEMPORAL_NAMESPACE: testNamespace(),
      CONSOLE_URL: 'https://console.example.com',
      API_URL: 'https://api.example.com',
      CONSOLE_DATABASE_URL: shared().database.urls.console,
      WEBHOOK_SECRET_KEYS: testWebhookSecretKeys,
    }),
    followed: ['CONSOLE_DATABASE_URL', 'KEY_PEPPERS', 'KEY_TAG_SECRETS', 'WEBHOOK_SECRET_KEYS', 'TEMPORAL_API_KEY'],
  },
};

describe.each(Object.entries(apps))('%s', (name, app) => {
  it('rejects each malformed value at the start in a sentence with the name of its setting', () => {
    const environment = app.environment();
    const mounted = mountSecret(Object.fromEntries(Object.keys(settings).map((setting) => [setting, 'x'])));
    for (const setting of Object.keys(settings)) delete environment[setting];
    let problems = '';
    try {
      app.read({ ...environment, ...mounted.settings });
    } catch (error) {
      problems = String(error);
    }
    for (const setting of app.followed.filter((one) => one !== 'TEMPORAL_API_KEY'))
      expect(problems).toMatch(new RegExp(`- ${setting}: must`));
    expect(problems).not.toMatch(/\{"|^ {4}at /m);
  });

  it.each(app.followed)(
    '%s: a value that cannot be used is rejected by name, and the old one stays',
    async (setting) => {
      const settingValues = settings[setting];
      if (settingValues === undefined) throw new Error(`there are no values for ${setting}`);
      const { old, next, bad } = await settingValues(name as LoginRole);
      const secret = mountSecret({ [setting]: old });
      const { [setting]: _, ...environment } = app.environment();
      const { followed } = app.read({ ...environment, ...secret.settings });
      expect(followed.names).toEqual([setting]);
      const registry = new Registry();
      const lines: string[] = [];
      const destination = { write: (line: string) => void lines.push(line) } as DestinationStream;
      const log = createLog({ level: 'info', name, region: 'us', destination });
      const report = reportSettings({ names: followed.names, registry, log });
      const valueNow = () => (followed.values as Record<string, unknown>)[setting];
      const rejected = async () => (await registry.metrics()).match(/^org_api_setting_rejected\{.*\} (\d)$/m)?.[1];
      const first = valueNow();

      for (const [what, value] of Object.entries(bad)) {
        secret.replace({ [setting]: value });
        lines.length = 0;
        await followed.check(report);
        await followed.check(report); // it is tried again, and reported once
        expect(lines, what).toHaveLength(1);
        expect(JSON.parse(lines[0] ?? ''), what).toMatchObject({ setting, level: 'error', reason: expect.any(String) });
        expect(lines[0], what).not.toMatch(/hunter|zz|the-next/);
        expect(await rejected(), what).toBe('1');
        expect(valueNow(), what).toBe(first);
      }

      lines.length = 0;
      secret.replace({ [setting]: next });
      await followed.check(report);
      expect(lines.map((line) => JSON.parse(line))).toEqual([expect.objectContaining({ setting, level: 'info' })]);
      expect(await rejected()).toBe('0');
      expect(valueNow()).not.toEqual(first);
    },
  );
});

it('a login that does not exist yet is used as soon as the server lets it in', async () => {
  const { database, owner } = shared();
  const user = `org_api_login_${randomBytes(4).toString('hex')}`;
  const next = Object.assign(new URL(database.urls.api), { username: user, password: 'later' }).href;
  const secret = mountSecret({ API_DATABASE_URL: database.urls.api });
  const { API_DATABASE_URL: _, ...environment } = apps.api.environment();
  const { followed, ...config } = readApi({ ...environment, ...secret.settings });
  const seen: string[] = [];
  const report = { onChanged: () => void seen.push('changed'), onRejected: () => void seen.push('rejected') };
  secret.replace({ API_DATABASE_URL: next });
  await followed.check(report);
  const client = await owner.pool.connect();
  await ensureLogin(client as unknown as pg.Client, { role: 'api', server: parsePostgresUrl(next) });
  client.release();
  onTestFinished(async () => void (await owner.pool.query(`drop owned by ${user}; drop role ${user}`)));
  await followed.check(report);
  expect(seen).toEqual(['rejected', 'changed']);
  expect(followed.values.API_DATABASE_URL.user).toBe(user);
  expect(config.region).toBe('us');
});

it('a value that several callers offer at once is tried once, and all of them get it', async () => {
  const tried: string[] = [];
  const value = new TriedValue(
    'old',
    { text: 'old' },
    {
      parse: (text) => ({ text }),
      async tryValue({ text }) {
        tried.push(text);
        await new Promise((resolve) => setImmediate(resolve));
        return null;
      },
    },
  );
  const changes: string[] = [];
  const report = { onChanged: () => void changes.push(value.text), onRejected: () => {} };
  const offer = async () => {
    await value.offer('new', report);
    return value.value;
  };
  const [one, other] = await Promise.all([offer(), offer()]);
  expect(one).toBe(other);
  expect([tried, changes]).toEqual([['new'], ['new']]);
});
