/** A region that the guide's commands have installed with the operator, on a real API server. */
import type { V1Deployment } from '@kubernetes/client-node';
import { expect, inject, vi } from 'vitest';
import type { ApiServer } from '#test/api-server.ts';
import { type ChildApp, startApp } from '#test/child-app.ts';
import { testWebhookSecretKeys } from '#test/secrets.ts';
import { testNamespace } from '#test/worker.ts';
import { expectQuietOperator } from '../operations/alerts.ts';
import { carryOut, readSection, without } from '../operations/page.ts';
import { setupDeclared, waiting } from './declared.ts';
import { openGuideShell } from './guide-shell.ts';
import { writeOperatorConfig } from './installed.ts';
import { readEnvironment } from './run-job.ts';

/** Installs it. No node runs its pods: the operator is a process that has the Deployment's settings. */
export async function installRegion(server: ApiServer) {
  const t = await setupDeclared(server);
  const { namespace, database } = t;
  const guide = await openGuideShell(server, namespace);
  const { shell, runHelm, addValues } = guide;
  const secrets = {
    DATABASE_URL: database.ownerUrl,
    ...Object.fromEntries(
      Object.entries(database.urls).map(([role, url]) => [`${role.toUpperCase()}_DATABASE_URL`, url]),
    ),
    WEBHOOK_SECRET_KEYS: testWebhookSecretKeys,
  };
  const { OPERATOR_DATABASE_URL, ...others } = secrets as Record<string, string>;
  const metadata = { name: 'org-api-us', namespace };
  await server.apply({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: others });
  await shell(`url() { echo '${OPERATOR_DATABASE_URL}'; }`);
  await carryOut(readSection('install.md', 'Write the values'), [
    [/^# us-values\.yaml\n/, addValues],
    [/^# us-values\.yaml, also: the console/, without('no page of these tests needs the console')],
    [/^kubectl .* port-forward /, without('no pod runs')],
  ]);
  // Only the addresses of servers are the test's, and no definitions of routes are installed.
  addValues('# us-values.yaml', {
    temporal: { address: inject('temporalAddress'), namespace: testNamespace() },
    worker: { webhookAllow: ['127.0.0.0/8'] },
    api: { httpRoute: { enabled: false } },
  });
  await carryOut(readSection('run-the-operator.md', 'Install it'), [
    [/^helm install org-api-crds /, without('the API server has the definitions')],
    [/^kubectl -n \$NS patch secret /, shell],
    [/^# (us|operator)-values\.yaml/, addValues],
    [/^helm upgrade \$RELEASE /, (command) => runHelm(command.replace('upgrade', 'upgrade --install'))],
    [/^kubectl get endpointslices /, shell],
    [/^helm install operator /, runHelm],
  ]);

  const kubeconfig = await writeOperatorConfig(server, namespace);
  let pod: ChildApp | undefined;
  const stopOperator = async () => {
    pod?.process.kill('SIGTERM');
    await pod?.ended;
  };
  /** Replaces the operator's pod by one of its Deployment, as a rollout does. */
  async function rollOutOperator(): Promise<void> {
    await stopOperator();
    const printed = await server.kubectl(['-n', namespace, 'get', 'deployment', 'operator', '-o', 'json']);
    const [container] = (JSON.parse(printed) as V1Deployment).spec?.template.spec?.containers ?? [];
    const settings = readEnvironment(container, { namespace, name: 'operator-1' });
    const here = { KUBECONFIG: kubeconfig, HOST: '127.0.0.1', METRICS_PORT: '0' };
    pod = await startApp('operator', { ...settings, ...here });
  }
  await rollOutOperator();

  return {
    ...t,
    ...guide,
    kubeconfig,
    /** The settings of the release's Secret. */
    secrets,
    stopOperator,
    rollOutOperator,
    expectQuietOperator: () => expectQuietOperator(pod?.metricsUrl ?? ''),
    /** Waits until a condition of the Region has a reason. */
    waitForReason: (type: string, reason: string) =>
      vi.waitFor(async () => {
        const query = `jsonpath={.status.conditions[?(@.type=="${type}")].reason}`;
        const found = await server.kubectl(['-n', namespace, 'get', 'region', 'region', '-o', query]);
        expect(found, pod?.lines.at(-1)).toBe(reason);
      }, waiting),
  };
}
