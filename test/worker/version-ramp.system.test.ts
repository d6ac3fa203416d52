/**
 * A new version of the workers takes traffic in steps, on the real server, and reverts by itself
 * when its tasks fail.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { countDeliveries } from '#test/count-deliveries.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { makeNamespace } from '#test/temporal.ts';
import { workerEnvironment } from '#test/worker.ts';
import { writeWorkflowBundle } from '#workflows/bundle.ts';
import { spawnWorker, startChildWorker } from './child-worker.ts';

const timeout = 240_000;
const patient = { timeout: 120_000, interval: 100 };
const deploymentName = 'org-api-ramp';

it('a new version whose workflow tasks fail gives its traffic back, and the previous version delivers everything', {
  timeout,
}, async () => {
  const t = await arrange();
  t.receiver.answer = (response) => void response.writeHead(503).end();
  await startChildWorker(t.environment('a'));
  await t.makeEvents(5); // for each of eight webhooks
  await vi.waitFor(async () => expect(await t.count('attempts > 0')).toBe(40), patient);

  const file = path.join(mkdtempSync(path.join(tmpdir(), 'altered-')), 'bundle.json');
  const workflowsPath = fileURLToPath(new URL('../workflows/altered/index.ts', import.meta.url));
  writeWorkflowBundle(file, await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') }));
  const broken = spawnWorker(t.environment('b', { WORKFLOW_BUNDLE: file, WORKER_RAMP_STEP: '60s' }));
  await vi.waitFor(
    async () => expect(await t.routing()).toEqual({ current: 'a', ramping: 'b', percentage: 5 }),
    patient,
  );
  await vi.waitFor(
    async () => expect(await t.routing()).toEqual({ current: 'a', ramping: 'b', percentage: 0 }),
    patient,
  );

  await vi.waitFor(() => expect(broken.lines.join('\n')).toContain('takes no traffic any more'), patient);
  expect(broken.lines.join('\n')).not.toContain('"isOpen":true');
  t.receiver.answer = (response) => void response.writeHead(204).end();
  await vi.waitFor(async () => expect(await t.count("state = 'delivered'")).toBe(40), patient);
  expect(await t.routing()).toEqual({ current: 'a', ramping: 'b', percentage: 0 });
});

it('the first version is current at once, and the next one only after 5 and 50 percent', { timeout }, async () => {
  const t = await arrange();
  const seen: string[] = [];
  let isWatching = true;
  const watch = async () => {
    for (; isWatching; await sleep(50)) {
      const { current, ramping, percentage } = await t.routing().catch(() => t.unknown);
      const now = `${current} ${ramping} ${percentage}`;
      if (current !== null && seen.at(-1) !== now) seen.push(now);
    }
  };
  const watched = watch();
  onTestFinished(() => {
    isWatching = false;
    return watched; // before the connection is closed
  });
  await startChildWorker(t.environment('a'));
  await startChildWorker(t.environment('b', { WORKER_RAMP_STEP: '2s' }));
  await vi.waitFor(() => expect(seen.at(-1)).toBe('b null 0'), patient);
  expect(seen).toEqual(['a null 0', 'a b 5', 'a b 50', 'b null 0']);
});

/** A webhook, a new namespace, and the settings of workers of a version. */
async function arrange() {
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  // A failing webhook has one attempt in progress at a time, and its retries go first: more
  // webhooks start their events sooner.
  for (let webhook = 0; webhook < 8; webhook += 1) await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  onTestFinished(() => connection.close());
  const namespace = await makeNamespace('org-api-ramp');
  const client = new Client({ connection, namespace });
  const { workflowService } = client;
  return {
    receiver,
    unknown: { current: null, ramping: null, percentage: 0 },
    environment: (buildId: string, settings: Record<string, string> = {}) =>
      workerEnvironment(database, {
        TEMPORAL_NAMESPACE: namespace,
        DELIVERY_SCHEDULE: Array(40).fill('3s').join(','),
        WORKER_DEPLOYMENT: deploymentName,
        ORG_API_BUILD_ID: buildId,
        ...settings,
      }),
    async makeEvents(count: number): Promise<void> {
      for (let event = 0; event < count; event += 1) await make.grant({ professional });
    },
    count: (condition: string) => countDeliveries(owner.pool, condition),
    async routing() {
      const { workerDeploymentInfo } = await workflowService.describeWorkerDeployment({ namespace, deploymentName });
      const routing = workerDeploymentInfo?.routingConfig;
      return {
        current: routing?.currentDeploymentVersion?.buildId || null,
        ramping: routing?.rampingDeploymentVersion?.buildId || null,
        percentage: routing?.rampingVersionPercentage ?? 0,
      };
    },
  };
}
