import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Cluster } from './cluster.ts';
import { CommandFailedError, runCommand } from './command.ts';
import { addKey, type Installation } from './installation.ts';
import { listStaying, type Pod } from './pods.ts';
import { buildSecret, type Release } from './release.ts';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const apps = ['api', 'worker', 'console'] as const;
const logins = ['API_DATABASE_URL', 'WORKER_DATABASE_URL', 'CONSOLE_DATABASE_URL'];
const secrets = ['KEY_PEPPERS', 'KEY_TAG_SECRETS', 'WEBHOOK_SECRET_KEYS'];
/** The kubelet checks Secrets about once a minute. */
const readDeadlineMs = 240_000;
/** Longer than a stopping worker may take. */
const goneDeadlineMs = 90_000;

/** A region whose secrets are rotated. */
export type Rotated = Pick<Installation, 'servers' | 'secrets' | 'pool' | 'organizations' | 'api'> & {
  release: Release;
};

/**
 * Rotates logins, peppers, tag secrets and sealing keys as in docs/operations/rotate-secrets.md: it
 * patches the same Secret and restarts no pod. It creates the second logins first. A new pepper is
 * added last and moves to the front once every pod has it. Sealed values are sealed again, and a
 * key is created with the new pepper and used.
 */
export async function rotateSecrets(cluster: Cluster, region: Rotated): Promise<void> {
  const { release, servers, secrets: own } = region;
  const before = identify(await listStaying(cluster, release));
  for (const app of apps) {
    const url = new URL(servers.podUrls[app]);
    url.username = `${url.username}_2`;
    url.password = randomBytes(16).toString('hex');
    servers.podUrls[app] = url.href;
  }
  await runApp('apps/migrate/main.ts', [], {
    DATABASE_URL: servers.ownerUrl,
    API_DATABASE_URL: servers.podUrls.api,
    WORKER_DATABASE_URL: servers.podUrls.worker,
    CONSOLE_DATABASE_URL: servers.podUrls.console,
    ALLOW_PLAINTEXT: 'postgresql', // pods reach it with the apps' URLs
  });

  const random = () => randomBytes(32).toString('base64');
  own.keyPeppers += `,2:${random()}`;
  own.keyTagSecrets += `,${random()}`;
  own.webhookSecretKeys += `,2:${random()}`;
  await patchSecret(cluster, region, [...logins, ...secrets]);

  for (const name of ['keyPeppers', 'keyTagSecrets', 'webhookSecretKeys'] as const)
    own[name] = own[name].split(',').reverse().join(',');
  await patchSecret(cluster, region, secrets);

  await runApp('apps/orgctl/main.ts', ['secrets', 'reseal', '--region', servers.region], {
    DATABASE_URL: servers.ownerUrl,
    WEBHOOK_SECRET_KEYS: own.webhookSecretKeys,
  });
  await assertReads(region);
  const after = identify(await listStaying(cluster, release));
  if (after !== before) throw new Error('pods were restarted or replaced by a rotation of secrets');
}

/** The pods, and how often each was restarted. */
const identify = (pods: readonly Pod[]) =>
  pods
    .map(({ metadata, status }) => `${metadata.uid} ${status.containerStatuses?.map((one) => one.restartCount)}`)
    .sort()
    .join('\n');

/**
 * Changes the Secret of a region and waits until every pod has read its part of `settings`.
 * @throws Error when some have not in time.
 */
async function patchSecret(cluster: Cluster, region: Rotated, settings: readonly string[]): Promise<void> {
  const { release, servers } = region;
  const changedAt = Date.now() / 1000;
  const patch = JSON.stringify({ stringData: buildSecret(region) });
  await cluster.kubectl(['patch', 'secret', `org-api-${servers.region}`, '-n', release.namespace, '-p', patch]);
  const giveUpAt = performance.now() + readDeadlineMs;
  for (;;) {
    const readings: Reading[] = [];
    // One by one, because each starts a program. A container that restarts has none, and counts as late.
    for (const pod of await listStaying(cluster, release))
      readings.push(
        ...(await listReadings(cluster, release, pod).catch((error: unknown) => {
          if (!(error instanceof CommandFailedError)) throw error;
          return settings.map((setting) => ({ pod: pod.metadata.name, setting, readAt: 0 }));
        })),
      );
    const ofInterest = readings.filter(({ setting }) => settings.includes(setting));
    const unseen = settings.filter((setting) => !ofInterest.some((one) => one.setting === setting));
    const late = ofInterest.filter(({ readAt }) => readAt < changedAt);
    if (unseen.length === 0 && late.length === 0) return;
    if (performance.now() > giveUpAt) {
      const stale = late.map(({ pod, setting }) => `${setting} by ${pod}`).join(', ');
      throw new Error(`a changed Secret was not read in time: ${stale}; by no pod: ${unseen.join(', ')}`);
    }
    await wait(5_000);
  }
}

interface Reading {
  pod: string;
  setting: string;
  /** Seconds since 1970. */
  readAt: number;
}

/**
 * Returns since when a pod has had the value of each setting from a file, from its metrics. The
 * request is made in the pod, so it needs no other network.
 */
export async function listReadings(
  cluster: Cluster,
  { namespace }: Release,
  { metadata: { name: pod } }: Pod,
): Promise<Reading[]> {
  const ask = `fetch('http://127.0.0.1:9090/metrics').then((a) => a.text()).then((t) => process.stdout.write(t))`;
  const metrics = await cluster.kubectl(['exec', pod, '-n', namespace, '--', 'node', '-e', ask]);
  const lines = metrics.matchAll(/^org_api_setting_read_timestamp_seconds\{[^}]*setting="(\w+)"[^}]*\} ([\d.e+]+)$/gm);
  return [...lines].map(([, setting = '', readAt]) => ({ pod, setting, readAt: Number(readAt) }));
}

/** Creates a key, which has the new pepper and tag secret, and checks that pods accept it. */
async function assertReads(region: Rotated): Promise<void> {
  const [organization] = region.organizations;
  if (organization === undefined) throw new Error('there is no organization to read');
  const key = await addKey(region, organization);
  const response = await fetch(`${region.api}/v1/orgs/${organization.id}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  if (response.status !== 200) throw new Error(`a key with the new pepper was answered ${response.status}`);
}

/**
 * Checks that the first logins are unused once all pods have restarted and the earlier ones have
 * ended.
 * @throws Error when one is used.
 */
export async function assertSecondLogins({ pool, servers }: Rotated): Promise<void> {
  const expected = apps.map((app) => new URL(servers.podUrls[app]).username);
  for (const giveUpAt = performance.now() + goneDeadlineMs; ; await wait(1_000)) {
    const { rows } = await pool.query<{ name: string }>(
      `select distinct usename as name from pg_stat_activity where datname = current_database()
        and application_name in ('org-api', 'org-api-worker', 'org-console')`,
    );
    const names = rows.map(({ name }) => name);
    if (names.length > 0 && names.every((name) => expected.includes(name))) return;
    if (performance.now() > giveUpAt) throw new Error(`pods are connected as ${names.join(', ') || 'nobody'}`);
  }
}

async function runApp(program: string, args: readonly string[], settings: Record<string, string>): Promise<void> {
  const env = { PATH: process.env.PATH, ORG_API_STATE: '/nonexistent', ...settings };
  await runCommand(process.execPath, [program, ...args], { cwd: repository, env });
}
