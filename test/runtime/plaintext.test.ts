/**
 * Keys and names never cross a network in plain text unless a setting allows it: every app and
 * command does not start.
 */
import { describe, expect, it } from 'vitest';
import { InvalidSettingsError } from '#runtime/errors.ts';
import { testKeySettings } from '#test/secrets.ts';
import { readConfig as readApi } from '../../apps/api/config.ts';
import { readConfig as readConsole } from '../../apps/console/config.ts';
import { readConfig as readDevConfig } from '../../apps/dev/config.ts';
import { readConfig as readImport } from '../../apps/import/config.ts';
import { readConfig as readMigrate } from '../../apps/migrate/config.ts';
import { readConfig as readOrgctl } from '../../apps/orgctl/config.ts';
import { readConfig as readDoctor } from '../../apps/orgctl/doctor/config.ts';
import { readConfig as readWorker } from '../../apps/worker/config.ts';

type Environment = Record<string, string>;

const id = '0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d';
const common = {
  ...testKeySettings,
  REGION: 'us',
  ORG_API_STATE: '/nowhere',
  WEBHOOK_SECRET_KEYS: `1:${Buffer.alloc(32, 3).toString('base64')}`,
  TEMPORAL_NAMESPACE: 'us',
  CONSOLE_URL: 'https://console.example.com',
  API_URL: 'https://api.example.com',
  PROBE_KEY: 'aln_us_x',
  PROBE_ORGANIZATION_ID: id,
  PROBE_WEBHOOK_ID: id,
  PROBE_WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
};
const apps: Record<string, { read: (environment: Environment) => unknown; servers: readonly string[] }> = {
  api: { read: readApi, servers: ['API_DATABASE_URL', 'REDIS_URL'] },
  worker: { read: readWorker, servers: ['WORKER_DATABASE_URL', 'TEMPORAL_ADDRESS'] },
  console: { read: readConsole, servers: ['CONSOLE_DATABASE_URL', 'TEMPORAL_ADDRESS'] },
  'orgctl doctor': {
    read: readDoctor,
    servers: ['DATABASE_URL', 'API_DATABASE_URL', 'WORKER_DATABASE_URL', 'REDIS_URL', 'TEMPORAL_ADDRESS'],
  },
  migrate: {
    read: readMigrate,
    servers: [
      'DATABASE_URL',
      'API_DATABASE_URL',
      'WORKER_DATABASE_URL',
      'CONSOLE_DATABASE_URL',
      'PLATFORM_DATABASE_URL',
    ],
  },
  import: { read: readImport, servers: ['DATABASE_URL'] },
  orgctl: { read: (environment) => readOrgctl('us', environment), servers: ['DATABASE_URL', 'TEMPORAL_ADDRESS'] },
  'npm start': {
    read: (environment) => readDevConfig([], environment),
    servers: ['DATABASE_URL', 'REDIS_URL', 'TEMPORAL_ADDRESS'],
  },
};

const getServerKind = (name: string) =>
  name === 'REDIS_URL' ? 'redis' : name === 'TEMPORAL_ADDRESS' ? 'temporal' : 'postgresql';
const values = {
  remote: {
    postgresql: 'postgresql://u:secret@db.example.com/org',
    redis: 'redis://:secret@10.0.0.1',
    temporal: 'temporal:7233',
  },
  local: { postgresql: 'postgresql://u:secret@127.0.0.1/org', redis: 'redis://[::1]:6379', temporal: 'localhost:7233' },
  tls: {
    postgresql: 'postgresql://u:secret@db.example.com/org?sslmode=verify-full',
    redis: 'rediss://:secret@10.0.0.1',
    temporal: 'temporal:7233',
  },
};

/** The settings of an app whose servers are all reached in this way. */
function buildEnvironment(app: string, way: keyof typeof values, more: Environment = {}): Environment {
  const servers = apps[app]?.servers.map((name) => [name, values[way][getServerKind(name)]]) ?? [];
  return { ...common, ...Object.fromEntries(servers), ...more };
}

function listProblems(app: string, environment: Environment): readonly string[] {
  try {
    apps[app]?.read(environment);
    return [];
  } catch (error) {
    if (!(error instanceof InvalidSettingsError)) throw error;
    return error.problems;
  }
}

describe.each(Object.keys(apps))('%s', (app) => {
  const servers = apps[app]?.servers ?? [];

  it('rejects each server on another machine without TLS, by the name of the setting', () => {
    const problems = listProblems(app, buildEnvironment(app, 'remote'));
    expect(problems.map((problem) => problem.split(':')[0]).sort()).toEqual([...servers].sort());
    for (const problem of problems)
      expect(problem).toMatch(/without TLS.*ALLOW_PLAINTEXT=(postgresql|redis|temporal)$/);
    expect(problems.join()).not.toMatch(/secret|example\.com|10\.0\.0\.1/);
  });

  it('accepts servers with TLS, on this machine, and in ALLOW_PLAINTEXT', () => {
    expect(listProblems(app, buildEnvironment(app, 'tls', { TEMPORAL_TLS: 'true' }))).toEqual([]);
    expect(listProblems(app, buildEnvironment(app, 'local'))).toEqual([]);
    const allowed = { ALLOW_PLAINTEXT: 'postgresql, redis,temporal' };
    expect(listProblems(app, buildEnvironment(app, 'remote', allowed))).toEqual([]);
  });

  it('accepts no other server than those named', () => {
    for (const server of ['postgresql', 'redis', 'temporal']) {
      const problems = listProblems(app, buildEnvironment(app, 'remote', { ALLOW_PLAINTEXT: server }));
      const others = servers.filter((name) => getServerKind(name) !== server);
      expect(problems.map((problem) => problem.split(':')[0]).sort()).toEqual([...others].sort());
    }
  });
});

describe('this machine', () => {
  const api = (url: string) => listProblems('api', buildEnvironment('api', 'local', { API_DATABASE_URL: url }));

  it.each([
    'postgresql://u:p@localhost:5432/org',
    'postgresql://u:p@127.8.9.1/org',
    'postgresql://u:p@[::1]/org',
    'postgresql://u:p@%2Fvar%2Frun%2Fpostgresql/org',
    'postgresql://u:p@/org?host=/var/run/postgresql',
    'postgresql://u:p@/org?host=127.0.0.1&port=5433',
  ])('is %s', (url) => expect(api(url)).toEqual([]));

  it.each([
    'postgresql://u:p@127.example.com/org',
    'postgresql://u:p@localhost.example.com/org',
    'postgresql://u:p@/org?host=db.example.com',
    'postgresql://u:p@0.0.0.0/org',
    'postgresql://u:p@127.1/org',
    'postgresql://u:p@db/org?sslmode=disable',
    'postgresql://u:p@db/org?sslmode=allow',
    'postgresql://u:p@db/org?sslmode=prefer',
    'postgresql://u:p@db/org?sslmode=require',
    'postgresql://u:p@db/org?sslmode=no-verify',
  ])('is not %s', (url) => expect(api(url)).toEqual([expect.stringMatching(/^API_DATABASE_URL: .*without TLS/)]));

  it.each(['postgresql://u:p@db/org?host=127.0.0.1', 'postgresql://u:p@127.0.0.1:1/org?port=2'])(
    'is not decided by one half of %s',
    (url) => expect(api(url)).toEqual([expect.stringMatching(/^API_DATABASE_URL: names a (host|port) twice/)]),
  );
});

it('an ALLOW_PLAINTEXT with a malformed name is rejected, also when nothing is plain', () => {
  const problems = listProblems('api', buildEnvironment('api', 'local', { ALLOW_PLAINTEXT: 'true' }));
  expect(problems).toEqual(['ALLOW_PLAINTEXT: must be names separated by commas, of postgresql, redis, temporal']);
});
