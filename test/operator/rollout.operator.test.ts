/** A rollout by the operator: real workers of several builds, a real Temporal, a real API server. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CustomObjectsApi, EventsV1Api } from '@kubernetes/client-node';
import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { afterAll, beforeAll, expect, inject, it, onTestFinished, vi } from 'vitest';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { workerEnvironment } from '#test/worker.ts';
import { writeWorkflowBundle } from '#workflows/bundle.ts';
import { workflowBundle } from '../../apps/dev/prebuilt.ts';
import { kinds, type Region } from '../../apps/operator/resources.ts';
import { spawnWorker } from '../worker/child-worker.ts';
import { type ApiServer, createNamespace, regionIn, startApiServer } from './api-server.ts';

const waiting = { timeout: 120_000, interval: 100 };
const deployment = 'org-api-rollout';

let server: ApiServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(() => server?.stop());

it('a build that cannot replay takes no traffic, and the repaired one goes through although the operator is killed', {
  timeout: 400_000,
}, async () => {
  const t = await arrange();
  t.startOperator('one');
  t.startBuild('a');
  await t.release('a');
  await vi.waitFor(async () => expect(await t.routing()).toBe('a'), waiting);

  t.receiver.answer = (response) => void response.writeHead(503).end();
  await t.makeEvents(5);
  await vi.waitFor(async () => expect(await t.count('attempts > 0')).toBe(5), waiting);
  t.startBuild('broken', { WORKFLOW_BUNDLE: await bundleAltered() });
  await t.release('broken');
  await vi.waitFor(async () => expect(await t.conditions()).toContain('ReplayVerified False ReplayFailed'), waiting);
  expect(await t.conditions()).toContain('Progressing False ReplayFailed');
  expect(await t.conditions()).toContain('Ready False ReplayFailed');
  expect(await t.events()).toContain('RolloutHeld');
  expect(await t.routing()).toBe('a');
  t.receiver.answer = (response) => void response.writeHead(204).end();
  await t.makeEvents(1);
  await vi.waitFor(async () => expect(await t.count(`state = 'delivered'`)).toBe(6), waiting);

  const seen = t.watchRouting();
  const operator = t.startOperator('two');
  t.startBuild('repaired');
  await t.release('repaired');
  await vi.waitFor(() => expect(seen.at(-1)).toBe('a, repaired 5 %'), waiting);
  t.kill('one');
  t.kill('two');
  await operator.ended;
  t.startOperator('three');
  await vi.waitFor(async () => expect(await t.conditions()).toContain('WorkersCurrent True BuildCurrent'), waiting);
  await vi.waitFor(async () => expect(await t.conditions()).toContain('Ready True AllConditionsHold'), waiting);

  expect(seen).toEqual(['a', 'a, repaired 5 %', 'a, repaired 50 %', 'repaired']);
  expect(await t.conditions()).toContain('ReplayVerified True HistoriesReplayed');
  expect((await t.read()).status?.rollout).toMatchObject({ build: 'repaired', state: 'Current', failed: 0 });
  await t.makeEvents(1);
  await vi.waitFor(async () => expect(await t.count(`state = 'delivered'`)).toBe(7), waiting);
});

/** Workflow code that takes other steps than the histories. */
async function bundleAltered(): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), 'altered-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, 'bundle.json');
  const workflowsPath = fileURLToPath(new URL('../workflows/altered/index.ts', import.meta.url));
  writeWorkflowBundle(file, await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') }));
  return file;
}

async function arrange() {
  const namespace = await createNamespace(server);
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const temporalNamespace = await registerNamespace();
  await server.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'org-api', namespace },
    stringData: { OPERATOR_DATABASE_URL: database.urls.operator },
  });
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-operator-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const kubeconfig = path.join(folder, 'kubeconfig.json');
  writeFileSync(kubeconfig, server.kubeConfig.exportConfig());
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  onTestFinished(() => connection.close());
  const custom = server.kubeConfig.makeApiClient(CustomObjectsApi);
  const operators = new Map<string, ReturnType<typeof spawnWorker>>();
  const { group, version, plural } = kinds.Region;
  const t = {
    receiver,
    startOperator(identity: string) {
      const environment = {
        REGION: 'us',
        OPERATOR_NAMESPACE: namespace,
        OPERATOR_IDENTITY: identity,
        KUBECONFIG: kubeconfig,
        WORKFLOW_BUNDLE: workflowBundle,
        HOST: '127.0.0.1',
        METRICS_PORT: '0',
      };
      const operator = spawnWorker(environment, undefined, 'operator');
      operators.set(identity, operator);
      return operator;
    },
    kill: (identity: string) => operators.get(identity)?.process.kill('SIGKILL'),
    startBuild: (buildId: string, settings: Record<string, string> = {}) =>
      spawnWorker(
        workerEnvironment(database, {
          TEMPORAL_NAMESPACE: temporalNamespace,
          DELIVERY_SCHEDULE: Array(40).fill('2s').join(','),
          WORKER_DEPLOYMENT: deployment,
          WORKER_BUILD_ID: buildId,
          WORKER_ROLLOUT: 'operator',
          ...settings,
        }),
      ),
    /** Declares a build as the release's. */
    release: (buildId: string) =>
      server.apply(
        regionIn(namespace, {
          release: { version: '0.1.0', buildId },
          temporal: { address: inject('temporalAddress'), namespace: temporalNamespace, deployment, tls: false },
          workers: { rollout: { mode: 'Operator', step: '6s' } },
        }),
      ),
    read: async () =>
      (await custom.getNamespacedCustomObject({ group, version, plural, namespace, name: 'region' })) as Region,
    conditions: async () =>
      ((await t.read()).status?.conditions ?? []).map(({ type, status, reason }) => `${type} ${status} ${reason}`),
    async events(): Promise<(string | undefined)[]> {
      const api = server.kubeConfig.makeApiClient(EventsV1Api);
      return (await api.listNamespacedEvent({ namespace })).items.map(({ reason }) => reason);
    },
    async routing(): Promise<string> {
      const { workerDeploymentInfo } = await connection.workflowService.describeWorkerDeployment({
        namespace: temporalNamespace,
        deploymentName: deployment,
      });
      const routing = workerDeploymentInfo?.routingConfig;
      const ramping = routing?.rampingDeploymentVersion?.buildId;
      const share = ramping ? `, ${ramping} ${Math.round(routing?.rampingVersionPercentage ?? 0)} %` : '';
      return `${routing?.currentDeploymentVersion?.buildId ?? ''}${share}`;
    },
    /** Every routing that was seen, in order. */
    watchRouting(): string[] {
      const seen: string[] = [];
      let isWatching = true;
      const watch = async () => {
        for (; isWatching; await sleep(50)) {
          const now = await t.routing().catch(() => seen.at(-1));
          if (now !== undefined && now !== seen.at(-1)) seen.push(now);
        }
      };
      const watched = watch();
      onTestFinished(() => {
        isWatching = false;
        return watched;
      });
      return seen;
    },
    async makeEvents(count: number): Promise<void> {
      for (let event = 0; event < count; event += 1) await make.grant({ professional });
    },
    async count(condition: string): Promise<number> {
      const { rows } = await owner.pool.query<{ n: number }>(
        `select count(*)::int as n from delivery where ${condition}`,
      );
      return rows[0]?.n ?? 0;
    },
  };
  return t;

  async function registerNamespace(): Promise<string> {
    const name = `org-api-rollout-${randomBytes(4).toString('hex')}`;
    const opened = await Connection.connect({ address: inject('temporalAddress') });
    onTestFinished(() => opened.close());
    const { workflowService } = new Client({ connection: opened });
    await workflowService.registerNamespace({
      namespace: name,
      workflowExecutionRetentionPeriod: { seconds: 86_400 } as never,
    });
    await vi.waitFor(
      () => workflowService.describeTaskQueue({ namespace: name, taskQueue: { name: 'deliver' } }),
      waiting,
    );
    return name;
  }
}
