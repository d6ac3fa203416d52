/** A network of IPv6 alone: where apps listen, and every setting that names a server. */
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { startApp } from '#test/child-app.ts';
import { spawnOrgctl } from '#test/orgctl.ts';
import { startReceiver } from '#test/receiver.ts';
import { apiEnvironment, consoleEnvironment, setupDatabase } from '#test/setup.ts';
import { allowSettings, allowSockets } from '#test/socket-guard.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { workerEnvironment } from '#test/worker.ts';
import { startForward } from '../cluster/forward.ts';
import { startCollector } from '../e2e/collector.ts';

const patient = { timeout: 60_000, interval: 100 };

/** Returns the URL with `[::1]` as its host, from where connections lead to the server. */
async function atIpv6(url: string): Promise<string> {
  const { port, stop } = await startForward('::1', Number(new URL(url).port));
  onTestFinished(stop);
  return Object.assign(new URL(url), { hostname: '[::1]', port: `${port}` }).href;
}

it('each app listens on IPv6, and reaches PostgreSQL, Redis, Temporal, the collector and receivers by addresses in brackets', {
  timeout: 240_000,
}, async () => {
  const { database, owner, make } = await setupDatabase();
  const [receiver, collector] = [await startReceiver(), await startCollector()];
  const postgres = new URL(await atIpv6(database.ownerUrl));
  const moved = (url: string) => Object.assign(new URL(url), { host: postgres.host }).href;
  const urls = Object.fromEntries(
    Object.entries(database.urls).map(([role, url]) => [`${role.toUpperCase()}_DATABASE_URL`, moved(url)]),
  );
  const temporal = { TEMPORAL_ADDRESS: new URL(await atIpv6(`http://${inject('temporalAddress')}`)).host };
  const settings: Record<string, string> = {
    ...urls,
    ...temporal,
    REDIS_URL: await atIpv6(inject('redisUrl')),
    OTEL_EXPORTER_OTLP_ENDPOINT: await atIpv6(collector.url),
    HOST: '::',
    WEBHOOK_ALLOW: '::1/128',
  };
  const hook = await atIpv6(receiver.url);
  allowSettings(settings);
  allowSockets('receivers', hook);
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  await owner.pool.query('update webhook set url = $1', [hook]);
  const { key } = await make.apiKey({ creator: professional });

  const api = await startApp('api', { ...apiEnvironment(database), ...settings });
  const worker = await startApp('worker', { ...workerEnvironment(database), ...settings });
  const origin = 'https://console.example.com';
  const console = await startApp('console', { ...consoleEnvironment(database, origin), ...settings });
  for (const { url, metricsUrl, lines } of [api, worker, console]) {
    const { port } = new URL(url ?? metricsUrl);
    const isReady = async () => expect((await fetch(`http://[::1]:${port}/readyz`)).status, lines.at(-1)).toBe(200);
    await vi.waitFor(isReady, patient);
  }

  const API_URL = `http://[::1]:${new URL(api.url).port}`;
  const read = await fetch(`${API_URL}/v1/orgs/${professional.orgId}`, { headers: { authorization: `Bearer ${key}` } });
  expect(read.status).toBe(200);
  await make.grant({ professional });
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), patient);
  expect(receiver.received[0]?.headers.host).toBe(new URL(hook).host);
  await vi.waitFor(() => expect(new Set(collector.spans().map(({ service }) => service)).size).toBe(2), patient);
  const { REDIS_URL = '' } = settings;
  const env = { REGION: 'us', ORG_API_STATE: temporaryFolder(), DATABASE_URL: postgres.href, REDIS_URL, ...temporal };
  const { stdout } = await spawnOrgctl({ ...env, TEMPORAL_NAMESPACE: 'default', API_URL }, ['doctor', '--json']);
  const { findings } = JSON.parse(stdout) as { findings: { check: string; state: string; message: string }[] };
  expect(findings.filter(({ message }) => /ECONNREFUSED|ENOTFOUND|EINVAL|Invalid URL/.test(message))).toEqual([]);
  for (const check of [/postgres/i, /redis/i, /temporal/i])
    expect(
      findings.some((one) => check.test(one.check) && one.state === 'ok'),
      `${check}`,
    ).toBe(true);
});
