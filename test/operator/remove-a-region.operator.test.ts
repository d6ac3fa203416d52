/** docs/operations/remove-a-region.md, with its own commands, against real Kubernetes controllers. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { CoreV1Api } from '@kubernetes/client-node';
import { afterAll, beforeAll, expect, inject, it, vi } from 'vitest';
import { type ApiServer, configOf, startApiServer } from '#test/api-server.ts';
import { spawnApp } from '#test/child-app.ts';
import { spawnOrgctl } from '#test/orgctl.ts';
import { operatorPeers } from '#test/render-charts.ts';
import { testWebhookSecretKeys } from '#test/secrets.ts';
import { makeNamespace } from '#test/temporal.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { getTool } from '../../charts/tools.ts';
import { carryOut, readSection, type Step, without } from '../operations/page.ts';
import { startControllerManager } from './controller-manager.ts';
import { setupDeclared, waiting } from './declared.ts';
import { runJob } from './run-job.ts';

const execute = promisify(execFile);
const helm = await getTool('helm');
const charts = path.join(import.meta.dirname, '../../charts');

let server: ApiServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(() => server?.stop());

it('removing a region as the guide says ends with no namespace, and with webhooks that are deleted or released', {
  timeout: 240_000,
}, async () => {
  const t = await arrange();

  await carryOut(readSection('remove-a-region.md', 'Remove it'), [
    [/^orgctl ledger$/, t.readLedger],
    [/^# last-backup\.yaml|^kubectl .*(-f last-backup|backup\.postgresql)/, without('CloudNativePG does not run')],
    [/^kubectl -n \$NS delete whsub /, t.kubectl],
    [/^helm uninstall \$RELEASE /, t.helm],
    [/^helm uninstall operator /, t.uninstallOperator],
    [/^temporal operator namespace delete /, without('the server is shared by the tests')],
    [/^helm uninstall valkey-us |delete scheduledbackup,cluster/, without('the servers run outside')],
    [/^kubectl delete namespace \$NS$/, t.kubectl],
  ]);

  expect(await t.listNamespaces()).not.toContain(t.namespace);
  expect(await t.listWebhooks()).toEqual([
    { url: 'https://hooks.example.com/deleted', state: 'deleted', managed_by: expect.any(String) },
    { url: 'https://hooks.example.com/retained', state: 'active', managed_by: null },
  ]);
});

it('a namespace ends although the release was removed before the declared webhooks', {
  timeout: 240_000,
}, async () => {
  const t = await arrange();

  await t.helm('helm uninstall $RELEASE -n $NS --wait');
  await t.kubectl('kubectl -n $NS delete whsub --all --timeout=5m');
  await t.uninstallOperator('helm uninstall operator -n $NS --wait');
  await t.kubectl('kubectl delete namespace $NS');

  expect(await t.listNamespaces()).not.toContain(t.namespace);
});

it('a namespace ends although the operator was removed first, and webhooks stay as they were', {
  timeout: 240_000,
}, async () => {
  const t = await arrange();

  await t.uninstallOperator('helm uninstall operator -n $NS --wait');
  expect(await t.listFinalizers()).toBe('');
  await t.kubectl('kubectl delete namespace $NS');

  expect(await t.listNamespaces()).not.toContain(t.namespace);
  expect(await t.listWebhooks()).toEqual([
    { url: 'https://hooks.example.com/deleted', state: 'active', managed_by: expect.any(String) },
    { url: 'https://hooks.example.com/retained', state: 'active', managed_by: expect.any(String) },
  ]);
});

it('a namespace whose operator was removed without its hook ends with the command of the guide', {
  timeout: 240_000,
}, async () => {
  const t = await arrange();
  await t.helm('helm uninstall operator -n $NS --wait --no-hooks');
  await t.stopPods();
  await t.kubectl('kubectl delete namespace $NS --wait=false');

  const repair: Step = [
    /^kubectl -n \$NS patch whsub NAME /,
    async (command) => {
      for (const name of ['retained', 'deleted']) await t.kubectl(command.replace('NAME', name));
    },
  ];
  await carryOut(readSection('remove-a-region.md', 'If the namespace waits'), [repair]);

  await vi.waitFor(async () => expect(await t.listNamespaces()).not.toContain(t.namespace), waiting);
});

/** A region with both charts, an operator, and two WebhookSubscriptions that are carried out. */
async function arrange() {
  const t = await setupDeclared(server);
  const { namespace, database } = t;
  startControllerManager(server);
  const folder = temporaryFolder();
  const administrator = path.join(folder, 'administrator.json');
  writeFileSync(administrator, server.kubeConfig.exportConfig());
  const shell = { NS: namespace, RELEASE: 'us' };
  const expand = (command: string) =>
    command.split(' ').map((word) => word.replace(/^\$(\w+)$/, (_, name: keyof typeof shell) => shell[name]));
  const runHelm = (command: string) => execute(helm, ['--kubeconfig', administrator, ...expand(command).slice(1)]);
  const kubectl = (command: string) => {
    const [, ...args] = expand(command);
    return server.kubectl(args.map((arg) => arg.replace(/^'(.*)'$/, '$1')));
  };
  const valuesFile = (name: string, values: object) => {
    const file = path.join(folder, name);
    writeFileSync(file, JSON.stringify(values));
    return file;
  };

  await server.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'org-api-us', namespace },
    stringData: { OPERATOR_DATABASE_URL: database.urls.operator, WEBHOOK_SECRET_KEYS: testWebhookSecretKeys },
  });
  const region = valuesFile('us-values.yaml', {
    region: 'us',
    baseUrls: { us: 'https://api.us.example.com', ca: 'https://api.ca.example.com' },
    image: { repository: 'registry.example.com/org-api' },
    secrets: { existingSecret: 'org-api-us', operatorDatabaseUrl: { key: 'OPERATOR_DATABASE_URL' } },
    allowPlaintext: ['redis', 'temporal'],
    temporal: { address: inject('temporalAddress'), namespace: await makeNamespace('removed') },
    networkPolicy: { enabled: false },
    operator: { region: { create: true, spec: { allowedOrganizations: ['*'] } } },
  });
  await runHelm(`helm install $RELEASE ${charts}/org-api -n $NS --values ${region}`);
  const operator = valuesFile('operator-values.yaml', {
    region: 'us',
    image: { repository: 'registry.example.com/org-api' },
    secrets: ['org-api-us'],
    webhooks: { enabled: true },
    networkPolicy: operatorPeers,
  });
  await runHelm(`helm install operator ${charts}/org-api-operator -n $NS --values ${operator}`);

  const { status } = await server.kubeConfig.makeApiClient(CoreV1Api).createNamespacedServiceAccountToken({
    name: 'operator',
    namespace,
    body: { spec: { audiences: [] } },
  });
  const KUBECONFIG = path.join(folder, 'operator.json');
  writeFileSync(KUBECONFIG, configOf(server.port, 'operator', status?.token ?? '').exportConfig());
  const pod = spawnApp('operator', {
    REGION: 'us',
    OPERATOR_NAMESPACE: namespace,
    OPERATOR_WEBHOOKS: 'true',
    KUBECONFIG,
    HOST: '127.0.0.1',
    METRICS_PORT: '0',
  });
  const stopPods = async () => {
    pod.process.kill('SIGTERM');
    await pod.ended;
  };
  for (const [name, reclaimPolicy] of Object.entries({ retained: 'retain', deleted: 'delete' }))
    await t.declare(name, { url: `https://hooks.example.com/${name}`, reclaimPolicy });
  for (const name of ['retained', 'deleted']) await t.waitUntilReady(name);

  return {
    namespace,
    kubectl,
    helm: runHelm,
    async readLedger(): Promise<void> {
      const env = { DATABASE_URL: database.ownerUrl, REGION: 'us', ORG_API_STATE: temporaryFolder() };
      expect((await spawnOrgctl(env, ['ledger'])).stdout).toMatch(/^waiting +0$/m);
    },
    /** Plays Kubernetes' part: its pods follow the Deployment, and the Job of the chart's hook runs. */
    async uninstallOperator(command: string): Promise<void> {
      const uninstalled = runHelm(command);
      const job = runJob(server, { namespace, name: 'operator-uninstall', kubeconfig: KUBECONFIG });
      const replicas = 'kubectl -n $NS get deployment operator -o jsonpath={.spec.replicas}';
      await vi.waitFor(async () => expect(await kubectl(replicas)).toBe('0'), waiting);
      await stopPods();
      await job;
      await uninstalled;
    },
    stopPods,
    listFinalizers: () => kubectl('kubectl -n $NS get whsub -o jsonpath={.items[*].metadata.finalizers}'),
    async listNamespaces() {
      return (await kubectl('kubectl get namespaces -o name')).split('\n').map((name) => name.split('/')[1]);
    },
    listWebhooks: () => t.rows('select url, state, managed_by from webhook order by url'),
  };
}
