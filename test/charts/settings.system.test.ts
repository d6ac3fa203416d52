import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { temporalAccess } from '#runtime/settings/temporal.ts';
import { makeCertificate } from '#test/certificates.ts';
import { listPods, type Manifest, pick, regions, render } from '#test/render-charts.ts';
import { readConfig as readApi } from '../../apps/api/config.ts';
import { readConfig as readConsole } from '../../apps/console/config.ts';
import { readConfig as readMigrate } from '../../apps/migrate/config.ts';
import { readConfig as readDoctor } from '../../apps/orgctl/doctor/config.ts';
import { readConfig as readWorker } from '../../apps/worker/config.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'org-api-chart-'));
afterAll(() => rmSync(folder, { recursive: true }));

const certificate = makeCertificate({ subject: 'us' });
/** A file's content as a setting: without the last line break. */
const pem = { cert: certificate.cert.trimEnd(), key: certificate.key.trimEnd() };
/** Returns a well-formed, fixed value for a key of a Secret. */
const contents: Record<string, string> = {
  DATABASE_URL: 'postgres://owner:p@db/org?sslmode=verify-full',
  API_DATABASE_URL: 'postgres://api:p@db/org?sslmode=verify-full',
  WORKER_DATABASE_URL: 'postgres://worker:p@db/org?sslmode=verify-full',
  CONSOLE_DATABASE_URL: 'postgres://console:p@db/org?sslmode=verify-full',
  REDIS_URL: 'redis://redis:6379',
  KEY_PEPPERS: `1:${Buffer.alloc(32, 1).toString('base64')}`,
  KEY_TAG_SECRETS: Buffer.alloc(32, 2).toString('base64'),
  WEBHOOK_SECRET_KEYS: `1:${Buffer.alloc(32, 3).toString('base64')}`,
  MAIL_URL: 'smtps://user:p@mail.example.com:465',
  TEMPORAL_TLS_CA: certificate.cert,
  TEMPORAL_TLS_CERT: certificate.cert,
  TEMPORAL_TLS_KEY: certificate.key,
  TEMPORAL_API_KEY: 'temporal-key',
  PROBE_KEY: 'aln_us_x',
  PROBE_ORGANIZATION_ID: '0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d',
  PROBE_WEBHOOK_ID: '0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3e',
  PROBE_WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
};
/** Everything that Temporal can require; certificate and key as in cert-manager's Secrets. */
const throughTls = {
  temporal: { tls: { enabled: true, serverName: 'us.temporal.example.com' } },
  secrets: {
    temporalCa: { existingSecret: 'temporal-client', key: 'ca.crt' },
    temporalCertificate: { existingSecret: 'temporal-client', key: 'tls.crt' },
    temporalCertificateKey: { existingSecret: 'temporal-client', key: 'tls.key' },
    temporalApiKey: { key: 'TEMPORAL_API_KEY' },
  },
};
/** Settings that the image contains, or that are the container's port and so not a value. */
const ofTheImage = ['HOST', 'METRICS_PORT', 'PORT', 'WORKFLOW_BUNDLE', 'PROBE_PORT'];
/** Logins that `helm test` does not check: no pod that runs all the time has them. */
const ofJobs = ['DATABASE_URL', 'PLATFORM_DATABASE_URL', 'OPERATOR_DATABASE_URL'];
/** Where an app is, and what its pods start. */
const getAppFolder = (app: string) => (app === 'doctor' ? 'orgctl/doctor' : app);
const getProgram = (app: string) => (app === 'doctor' ? 'apps/orgctl/main.ts doctor' : `apps/${app}/main.ts`);
const apps = { api: readApi, worker: readWorker, migrate: readMigrate, doctor: readDoctor };

/** Returns the environment of a container, its secrets mounted below `folder`. */
function readEnvironment(pod: Manifest): Record<string, string> {
  const [container] = pod.containers;
  const mount = container.volumeMounts.find((one: Manifest) => one.name === 'secrets').mountPath;
  const { sources } = pod.volumes.find((one: Manifest) => one.name === 'secrets').projected;
  for (const { path: file } of sources.map((one: Manifest) => one.secret.items[0]))
    writeFileSync(path.join(folder, file), contents[file] ?? '');
  return Object.fromEntries(container.env.map((one: Manifest) => [one.name, String(one.value).replace(mount, folder)]));
}

describe.each(regions)('settings of %s', (region) => {
  const pods = listPods(render({ region }));
  const getPod = (app: string) => {
    const pod = pods.find((one) => one.spec.containers[0].command.slice(1).join(' ') === getProgram(app));
    if (pod === undefined) throw new Error(`no pod runs ${app}`);
    return pod.spec;
  };

  it.each(Object.keys(apps) as (keyof typeof apps)[])('are accepted by the %s itself', (app) => {
    const config = apps[app](readEnvironment(getPod(app)));
    if (app !== 'migrate') expect(config).toMatchObject({ region });
    else
      expect((config as ReturnType<typeof readMigrate>).logins.map((login) => login.role)).toEqual([
        'api',
        'worker',
        'console',
      ]);
  });

  it('give each pod exactly the secrets that it reads', () => {
    const listSecrets = (app: string) =>
      getPod(app)
        .volumes.find((one: Manifest) => one.name === 'secrets')
        .projected.sources.map((one: Manifest) => one.secret.items[0].path);
    expect(listSecrets('api')).toEqual(['API_DATABASE_URL', 'KEY_PEPPERS', 'KEY_TAG_SECRETS', 'REDIS_URL']);
    expect(listSecrets('worker')).toEqual(['MAIL_URL', 'WEBHOOK_SECRET_KEYS', 'WORKER_DATABASE_URL']);
    expect(listSecrets('console')).toEqual([
      'CONSOLE_DATABASE_URL',
      'KEY_PEPPERS',
      'KEY_TAG_SECRETS',
      'WEBHOOK_SECRET_KEYS',
    ]);
    expect(listSecrets('doctor').filter((name: string) => !name.startsWith('PROBE_'))).toEqual([
      'API_DATABASE_URL',
      'CONSOLE_DATABASE_URL',
      'REDIS_URL',
      'WORKER_DATABASE_URL',
    ]);
    expect(listSecrets('migrate')).toEqual([
      'API_DATABASE_URL',
      'CONSOLE_DATABASE_URL',
      'DATABASE_URL',
      'WORKER_DATABASE_URL',
    ]);
  });

  it('have no secret in the environment, only names of files', () => {
    for (const { spec } of pods)
      for (const { name, value, valueFrom } of spec.containers[0].env) {
        expect(valueFrom, name).toBeUndefined();
        expect(
          Object.keys(contents).filter((secret) => secret !== 'PROBE_WEBHOOK_ID'),
          name,
        ).not.toContain(name);
        if (name.endsWith('_FILE')) expect(value).toMatch(/^\/run\/secrets\/org-api\/[A-Z_]+$/);
      }
  });
});

describe('settings', () => {
  it.each(['api', 'worker', 'migrate', 'doctor'] as const)('that the %s reads are all set by the chart', (app) => {
    const source = readFileSync(new URL(`../../apps/${getAppFolder(app)}/config.ts`, import.meta.url), 'utf8');
    const known = [...source.matchAll(/^ {2}([A-Z][A-Z_]+):/gm)].map(([, name]) => name ?? '');
    if (source.includes('...temporalAccess')) known.push(...Object.keys(temporalAccess));
    const values = {
      secrets: { platformDatabaseUrl: { key: 'P' }, operatorDatabaseUrl: { key: 'O' }, ...throughTls.secrets },
      temporal: throughTls.temporal,
      worker: { webhookAllow: ['10.9.0.1'], deliverySchedule: '1s', suspendAfter: '84h' },
    };
    const pod = listPods(render({ values })).find(
      (one) => one.spec.containers[0].command.slice(1).join(' ') === getProgram(app),
    );
    const set = pod?.spec.containers[0].env.map(({ name }: Manifest) => name.replace(/_FILE$/, ''));
    expect(known.length).toBeGreaterThan(4);
    const left = [...ofTheImage, ...(app === 'doctor' ? ofJobs : [])];
    expect(known.filter((name) => !set.includes(name) && !left.includes(name))).toEqual([]);
  });

  it('of Temporal behind mutual TLS and an API key are accepted by worker, console and helm test, and no other pod has them', () => {
    const pods = listPods(render({ values: throughTls }));
    const read = { worker: readWorker, console: readConsole, doctor: readDoctor };
    for (const { spec } of pods) {
      const program = spec.containers[0].command[1].split('/')[1] as string;
      const app = program === 'orgctl' ? 'doctor' : program;
      const environment = readEnvironment(spec);
      const isOfTemporal = Object.keys(environment).filter((name) => name.startsWith('TEMPORAL_'));
      if (app in read)
        expect(read[app as keyof typeof read](environment).temporal, app).toMatchObject({
          tls: { serverName: 'us.temporal.example.com', ca: pem.cert, own: pem },
          apiKey: expect.any(Function),
        });
      else expect(isOfTemporal, app).toEqual([]);
    }
    expect(pods.length).toBeGreaterThan(4);
  });

  it('of the platform’s login go to the migrations when it has a key', () => {
    const values = { secrets: { platformDatabaseUrl: { existingSecret: 'platform', key: 'uri' } } };
    const job = pick(render({ values }), 'Job');
    const { sources } = job.spec.template.spec.volumes[1].projected;
    const items = [{ key: 'uri', path: 'PLATFORM_DATABASE_URL' }];
    expect(sources).toContainEqual({ secret: { name: 'platform', items } });
    expect(JSON.stringify(pick(render(), 'Job'))).not.toContain('PLATFORM');
  });

  it('take each secret from its own Secret when one is named', () => {
    const values = { secrets: { apiDatabaseUrl: { existingSecret: 'pg-api', key: 'uri' } } };
    const { sources } = pick(render({ values }), 'Deployment', '-api').spec.template.spec.volumes[1].projected;
    expect(sources[0].secret).toEqual({ name: 'pg-api', items: [{ key: 'uri', path: 'API_DATABASE_URL' }] });
    expect(sources[1].secret.name).toBe('org-api-us');
  });
});

it('the chart has no Secret and no value that looks like one', () => {
  const templates = new URL('../../charts/org-api/templates/', import.meta.url);
  for (const name of readdirSync(templates, { recursive: true, encoding: 'utf8' }).filter((one) =>
    /\.(yaml|tpl)$/.test(one),
  ))
    expect(readFileSync(new URL(name, templates), 'utf8'), name).not.toMatch(/^kind: Secret|stringData|secretKeyRef/m);
});
