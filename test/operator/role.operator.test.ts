import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CoreV1Api, CustomObjectsApi, KubeConfig } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { createLog } from '#runtime/log.ts';
import { setupDatabase } from '#test/setup.ts';
import { testNamespace } from '#test/worker.ts';
import { startOperator } from '../../apps/operator/app.ts';
import { readConfig } from '../../apps/operator/config.ts';
import { kinds, type Region } from '../../apps/operator/resources.ts';
import { render } from '../charts/render.ts';
import { type ApiServer, createNamespace, regionIn, startApiServer } from './api-server.ts';

const chart = path.join(import.meta.dirname, '../../charts/org-api-operator');

let server: ApiServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(() => server?.stop());

/** Runs an operator as the chart's ServiceAccount, with the chart's Role. */
async function setup() {
  const namespace = await createNamespace(server);
  const objects = render({ from: chart, region: null, namespace, release: 'operator' });
  for (const object of objects) if (object.kind !== 'Deployment') await server.apply(object);
  const core = server.kubeConfig.makeApiClient(CoreV1Api);
  const { status } = await core.createNamespacedServiceAccountToken({
    name: 'operator',
    namespace,
    body: { spec: { audiences: [] } },
  });
  const { database } = await setupDatabase();
  await server.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'org-api', namespace },
    data: { OPERATOR_DATABASE_URL: Buffer.from(database.urls.operator).toString('base64') },
  });
  const kubeConfig = new KubeConfig();
  const cluster = server.kubeConfig.getCurrentCluster();
  if (cluster === null) throw new Error('there is no cluster');
  kubeConfig.loadFromClusterAndUser(cluster, { name: 'operator', token: status?.token ?? '' });
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-operator-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, 'kubeconfig.json');
  writeFileSync(file, kubeConfig.exportConfig());
  const config = readConfig({
    REGION: 'us',
    OPERATOR_NAMESPACE: namespace,
    OPERATOR_IDENTITY: 'test',
    KUBECONFIG: file,
    HOST: '127.0.0.1',
    METRICS_PORT: '0',
  });
  const operator = await startOperator(config, createLog({ level: 'silent', name: 'operator', region: 'us' }));
  onTestFinished(() => operator.stop());
  return { namespace, operator, rules: objects.find(({ kind }) => kind === 'Role')?.rules };
}

describe("the chart's Role", () => {
  it('lets the operator lead and write status, and names no kind that it does not call', async () => {
    const { namespace, operator, rules } = await setup();
    const temporal = { address: inject('temporalAddress'), namespace: testNamespace(), tls: false };
    await server.apply(regionIn(namespace, { temporal }));
    const api = server.kubeConfig.makeApiClient(CustomObjectsApi);
    const { group, version, plural } = kinds.Region;
    const request = { group, version, plural, namespace, name: 'region' };
    const readRegion = async () => (await api.getNamespacedCustomObject(request)) as Region;

    await vi.waitFor(async () => expect((await readRegion()).status?.deliveries?.waiting).toBe(0), 60_000);

    const page = await (await fetch(new URL('/metrics', operator.metricsUrl))).text();
    const called = [...page.matchAll(/org_api_operator_requests_total\{.*resource="([^"]+)"/g)].map(([, one]) => one);
    const named = (rules as { resources: string[] }[]).flatMap(({ resources }) => resources);
    const onlyOnFailure = ['events'];
    expect(new Set(named)).toEqual(new Set([...called, ...onlyOnFailure]));
    expect(JSON.stringify(rules)).toContain(group);
  });
});
