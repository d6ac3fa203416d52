/**
 * Parts of the cluster test that need no Kubernetes, run with a worker in this process and the
 * sample receiver.
 */
import { expect, it, onTestFinished, vi } from 'vitest';
import { createLog } from '#runtime/log.ts';
import { mountSecret } from '#test/mounted-secret.ts';
import { testWebhookSecretKeys } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTestWorker } from '#test/worker.ts';
import { startReceiver } from '../../apps/receiver/app.ts';
import { readConfig } from '../../apps/receiver/config.ts';
import type { Cluster } from './cluster.ts';
import { createRandom } from './pods.ts';
import type { Release } from './release.ts';
import { listReadings } from './rotation.ts';
import { acrossRollout } from './waiting.ts';

const timeout = 90_000;

it('deliveries that the receiver rejects wait during a rollout, are counted, and are delivered after it', {
  timeout,
}, async () => {
  const { database, owner, make } = await setupDatabase();
  const professional = await make.member();
  const config = readConfig({ PORT: '0' });
  const receiver = await startReceiver(config, createLog({ level: 'silent', name: 'receiver', region: 'us' }));
  onTestFinished(() => receiver.stop());
  const webhook = await make.webhook({ orgId: professional.orgId, url: `${receiver.url}/hooks/one` });
  await fetch(`${receiver.url}/secrets`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ one: [webhook.secret] }),
  });
  const schedule = { DELIVERY_SCHEDULE: '500ms,1s,2s,2s,2s,2s,2s,2s,2s,2s,2s,2s,2s' };
  const first = await startTestWorker(database, schedule);
  for (let made = 0; made < 6; made += 1) await make.grant({ professional });

  const lines: string[] = [];
  const region = { pool: owner.pool, servers: { region: 'us' } as never };
  const options = { regions: [region], receiver: receiver.url, report: (line: string) => void lines.push(line) };
  await acrossRollout(options, async () => {
    await startTestWorker(database, schedule);
    await first.stop();
  });

  // It continues once five have failed: a failing webhook gets one post at a time.
  expect(lines).toEqual([
    expect.stringMatching(/^us: [56] deliveries waited across the rollout and were delivered after it$/),
  ]);
});

it('a pod’s metrics report since when it has the value of each setting', { timeout }, async () => {
  const { database } = await setupDatabase();
  const mounted = mountSecret({ WEBHOOK_SECRET_KEYS: testWebhookSecretKeys });
  const { metricsUrl } = await startTestWorker(database, { WEBHOOK_SECRET_KEYS: '', ...mounted.settings });
  const cluster = { kubectl: async () => (await fetch(`${metricsUrl}/metrics`)).text() } as unknown as Cluster;
  const read = () => listReadings(cluster, { namespace: 'n' } as Release, { metadata: { name: 'pod' } } as never);
  const [before] = await read();
  expect(before).toEqual({ pod: 'pod', setting: 'WEBHOOK_SECRET_KEYS', readAt: expect.any(Number) });
  const changedAt = Date.now() / 1000;
  expect(before?.readAt).toBeLessThan(changedAt);
  mounted.replace({ WEBHOOK_SECRET_KEYS: `${testWebhookSecretKeys},2:${Buffer.alloc(32, 7).toString('base64')}` });
  await vi.waitFor(async () => expect((await read())[0]?.readAt).toBeGreaterThan(changedAt), { timeout: 20_000 });
});

it('pods are chosen by a seed, which repeats the choice', () => {
  const choose = (seed: number) => {
    const random = createRandom(seed);
    return Array.from({ length: 300 }, () => Math.floor(random() * 3));
  };
  expect(choose(7)).toEqual(choose(7));
  expect(choose(7)).not.toEqual(choose(8));
  for (const which of [0, 1, 2]) expect(choose(7).filter((one) => one === which).length).toBeGreaterThan(60);
});
