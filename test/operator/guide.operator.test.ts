/** The values of the guide for both charts, together: what they render starts and becomes ready. */
import path from 'node:path';
import { CustomObjectsApi } from '@kubernetes/client-node';
import { expect, inject, it, vi } from 'vitest';
import { parse } from 'yaml';
import { createKubeConfig, createNamespace } from '#test/api-server.ts';
import { spawnApp, startApp } from '#test/child-app.ts';
import { listBlocks, readGuide } from '#test/documents.ts';
import { mountSecret } from '#test/mounted-secret.ts';
import { chart, type Manifest, ofKind, pick, render } from '#test/render-charts.ts';
import { testKeySettings, testWebhookSecretKeys } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { makeNamespace } from '#test/temporal.ts';
import { workflowBundle } from '../../apps/dev/workflow-bundle.ts';
import { kinds, type Region } from '../../apps/operator/kube/resources.ts';
import { mergeValues } from './guide-shell.ts';
import { installOperator } from './installed.ts';
import { shareApiServer } from './share-api-server.ts';

const waiting = { timeout: 90_000, interval: 200 };

const server = shareApiServer();

/** The values of a file of the guide, with the additions whose first lines say these words. */
function readValues(file: string, ...additions: string[]): object[] {
  const guide = {
    file: 'docs/operations',
    text: readGuide()
      .map(({ text }) => text)
      .join('\n'),
  };
  const examples = listBlocks(guide, 'yaml').filter((one) => one.startsWith(`# ${file}`));
  const wanted = ['', ...additions.map((words) => `, also: ${words}`)];
  return wanted.map((words) => {
    const example = examples.find((one) => one.startsWith(`# ${file}${words}\n`));
    if (example === undefined) throw new Error(`the guide has no ${file}${words}`);
    return parse(example, { merge: true }) as object;
  });
}

it('the documented values of release and operator start every process, on IPv6 too, and the Region becomes ready', {
  timeout: 300_000,
}, async () => {
  const namespace = await createNamespace(server());
  const { database } = await setupDatabase();
  const values: Record<string, string> = {
    DATABASE_URL: database.ownerUrl,
    ...Object.fromEntries(
      Object.entries(database.urls).map(([role, url]) => [`${role.toUpperCase()}_DATABASE_URL`, url]),
    ),
    REDIS_URL: inject('redisUrl'),
    ...testKeySettings,
    WEBHOOK_SECRET_KEYS: testWebhookSecretKeys,
  };
  // Only the addresses of servers are the test's.
  const own = { temporal: { address: inject('temporalAddress'), namespace: await makeNamespace('guide') } };
  const release = [...readValues('us-values.yaml', 'the console', 'the Region'), own].reduce(mergeValues);
  const manifests = render({ region: null, release: 'us', namespace, values: release });
  const mounted = mountSecret(values);

  /** What a container of the chart gets: its settings, with the folder of the Secret on this machine. */
  const readEnvironment = ({ env }: Manifest): Record<string, string> =>
    Object.fromEntries(
      env.map(({ name, value = 'pod' }: { name: string; value?: string }) => [name, mounted.settings[name] ?? value]),
    );
  const getContainer = (object: Manifest): Manifest => object.spec.template.spec.containers[0];
  const getApp = ({ command }: Manifest): string => path.basename(path.dirname(command[1]));
  const [migration] = ofKind(manifests, 'Job').map(getContainer);
  const migrated = spawnApp(getApp(migration), readEnvironment(migration));
  expect(await migrated.ended, migrated.lines.join('\n')).toMatchObject({ code: 0 });

  const ports = { PORT: '0', METRICS_PORT: '0', READY_AFTER: '0s', WORKFLOW_BUNDLE: workflowBundle };
  const deployments = ofKind(manifests, 'Deployment').map(getContainer);
  expect(deployments.map(getApp).toSorted()).toEqual(['api', 'console', 'worker']);
  for (const container of deployments) {
    const app = await startApp(getApp(container), { ...readEnvironment(container), ...ports });
    const url = container.readinessProbe.httpGet.port === 'metrics' ? app.metricsUrl : app.url;
    const { port } = new URL(url);
    await vi.waitFor(
      async () => expect((await fetch(`http://[::1]:${port}/readyz`)).status, app.lines.join('\n')).toBe(200),
      waiting,
    );
  }

  await server().apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'org-api-us', namespace },
    stringData: values,
  });
  const ofOperator = readValues('operator-values.yaml').reduce(mergeValues);
  const installed = await installOperator(server(), namespace, ofOperator);
  await server().apply(pick(manifests, 'Region'));
  const from = path.join(chart, '../org-api-operator');
  const [rendered] = ofKind(
    render({ from, region: null, release: 'operator', namespace, values: ofOperator }),
    'Deployment',
  );
  const operator = getContainer(rendered);
  const process = spawnApp('operator', {
    ...readEnvironment(operator),
    OPERATOR_NAMESPACE: namespace,
    METRICS_PORT: '0',
    KUBECONFIG: installed.kubeconfig,
  });
  const custom = createKubeConfig(server().port, 'admin', 'admin-token').makeApiClient(CustomObjectsApi);
  const { group, version, plural } = kinds.Region;
  await vi.waitFor(async () => {
    const found = await custom.getNamespacedCustomObject({ group, version, plural, namespace, name: 'region' });
    expect((found as Region).status?.conditions, process.lines.at(-1)).toContainEqual(
      expect.objectContaining({ type: 'Ready', status: 'True' }),
    );
  }, waiting);
});
