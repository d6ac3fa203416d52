/** docs/operations/remove-a-region.md, with its own commands, against real Kubernetes controllers. */
import { expect, it, vi } from 'vitest';
import { spawnOrgctl } from '#test/orgctl.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { carryOut, readSection, type Step, without } from '../operations/page.ts';
import { startControllerManager } from './controller-manager.ts';
import { waiting } from './declared.ts';
import { installRegion } from './guide-region.ts';
import { runJob } from './run-job.ts';
import { shareApiServer } from './share-api-server.ts';

const server = shareApiServer();

it('removing a region as the guide says ends with no namespace, and with webhooks that are deleted or detached', {
  timeout: 240_000,
}, async () => {
  const t = await arrange();

  await carryOut(readSection('remove-a-region.md', 'Remove it'), [
    [/^orgctl ledger$/, t.readLedger],
    [/^# last-backup\.yaml|^kubectl .*(-f last-backup|backup\.postgresql)/, without('CloudNativePG does not run')],
    [/^kubectl -n \$NS delete whsub /, t.shell],
    [/^helm uninstall \$RELEASE /, t.shell],
    [/^helm uninstall operator /, t.uninstallOperator],
    [/^temporal operator namespace delete /, without('the server is shared by the tests')],
    [/^helm uninstall valkey-us |delete scheduledbackup,cluster/, without('the servers run outside')],
    [/^kubectl delete namespace \$NS$/, t.shell],
    [/^select rolname /, async (query) => expect((await t.rows(query)).length).toBeGreaterThan(3)],
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

  await t.shell('helm uninstall $RELEASE -n $NS --wait');
  await t.shell('kubectl -n $NS delete whsub --all --timeout=5m');
  await t.uninstallOperator('helm uninstall operator -n $NS --wait');
  await t.shell('kubectl delete namespace $NS');

  expect(await t.listNamespaces()).not.toContain(t.namespace);
});

it('a namespace ends although the operator was removed first, and webhooks stay as they were', {
  timeout: 240_000,
}, async () => {
  const t = await arrange();

  await t.uninstallOperator('helm uninstall operator -n $NS --wait');
  expect(await t.listFinalizers()).toBe('');
  await t.shell('kubectl delete namespace $NS');

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
  await t.shell('helm uninstall operator -n $NS --wait --no-hooks');
  await t.stopOperator();
  await t.shell('kubectl delete namespace $NS --wait=false');

  const repair: Step = [
    /^kubectl -n \$NS patch whsub NAME /,
    async (command) => {
      for (const name of ['retained', 'deleted']) await t.shell(command.replace('NAME', name));
    },
  ];
  await carryOut(readSection('remove-a-region.md', 'If the namespace waits'), [repair]);

  await vi.waitFor(async () => expect(await t.listNamespaces()).not.toContain(t.namespace), waiting);
});

/** A region whose operator carries out two WebhookSubscriptions. */
async function arrange() {
  const t = await installRegion(server());
  startControllerManager(server());
  t.addValues('# us-values.yaml', { operator: { region: { spec: { allowedOrganizations: ['*'] } } } });
  t.addValues('# operator-values.yaml', { webhooks: { enabled: true } });
  await t.runHelm('helm upgrade $RELEASE charts/org-api -n $NS --values us-values.yaml');
  await t.runHelm('helm upgrade operator charts/org-api-operator -n $NS --values operator-values.yaml');
  await t.rollOutOperator();
  for (const [name, reclaimPolicy] of Object.entries({ retained: 'retain', deleted: 'delete' }))
    await t.declare(name, { url: `https://hooks.example.com/${name}`, reclaimPolicy });
  for (const name of ['retained', 'deleted']) await t.waitUntilReady(name);
  const { namespace, database } = t;

  return {
    ...t,
    async readLedger(): Promise<void> {
      const env = { DATABASE_URL: database.ownerUrl, REGION: 'us', ORG_API_STATE: temporaryFolder() };
      expect((await spawnOrgctl(env, ['ledger'])).stdout).toMatch(/^waiting +0$/m);
    },
    /** Plays Kubernetes' part: its pods follow the Deployment, and the Job of the chart's hook runs. */
    async uninstallOperator(command: string): Promise<void> {
      const uninstalled = t.shell(command);
      const settings = { KUBECONFIG: t.kubeconfig };
      const job = runJob(server(), { namespace, name: 'operator-uninstall', settings });
      const replicas = ['-n', namespace, 'get', 'deployment', 'operator', '-o', 'jsonpath={.spec.replicas}'];
      await vi.waitFor(async () => expect(await server().kubectl(replicas)).toBe('0'), waiting);
      await t.stopOperator();
      await job;
      await uninstalled;
    },
    listFinalizers: () => t.shell("kubectl -n $NS get whsub -o jsonpath='{.items[*].metadata.finalizers}'"),
    async listNamespaces() {
      return (await t.shell('kubectl get namespaces -o name')).split('\n').map((name) => name.split('/')[1]);
    },
    listWebhooks: () => t.rows('select url, state, managed_by from webhook order by url'),
  };
}
