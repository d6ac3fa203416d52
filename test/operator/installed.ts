/** What the operator's chart installs except its pods: its identity and rights. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { CoreV1Api } from '@kubernetes/client-node';
import { type ApiServer, createKubeConfig } from '#test/api-server.ts';
import { operatorValues, render } from '#test/render-charts.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';

const chart = path.join(import.meta.dirname, '../../charts/org-api-operator');

interface Rule {
  resources: string[];
  verbs: string[];
}

/** Gets a token of the operator's ServiceAccount. Returns a file, with which its process has the rights of its pod. */
export async function writeOperatorConfig(server: ApiServer, namespace: string): Promise<string> {
  const { status } = await server.kubeConfig.makeApiClient(CoreV1Api).createNamespacedServiceAccountToken({
    name: 'operator',
    namespace,
    body: { spec: { audiences: [] } },
  });
  const file = path.join(temporaryFolder(), 'operator.json');
  writeFileSync(file, createKubeConfig(server.port, 'operator', status?.token ?? '').exportConfig());
  return file;
}

/** Applies the chart's ServiceAccount, Role and RoleBinding to a namespace, and gets a token. */
export async function installOperator(server: ApiServer, namespace: string, values: object = {}) {
  const all = { ...operatorValues, ...values };
  const objects = render({ from: chart, region: null, namespace, release: 'operator', values: all });
  const installed = objects.filter(
    ({ kind, metadata }) => kind !== 'Deployment' && !metadata.annotations?.['helm.sh/hook'],
  );
  for (const object of installed) await server.apply(object);
  const kubeconfig = await writeOperatorConfig(server, namespace);
  const rules = installed.find(({ kind }) => kind === 'Role')?.rules as Rule[];
  const allowed = rules.flatMap(({ resources, verbs }) =>
    resources.flatMap((one) => verbs.map((verb) => `${verb} ${one}`)),
  );
  /** Its requests in the API server's audit log, oldest first, such as `patch regions/status`. */
  const listRequests = () =>
    server
      .readAuditLog(namespace)
      .filter(({ user }) => user === `system:serviceaccount:${namespace}:operator`)
      .map(({ verb, resource, code }) => ({ request: `${verb} ${resource}`, code }));
  return {
    /** A file. */
    kubeconfig,
    /** The rights of the Role, sorted. */
    allowed: [...new Set(allowed)].toSorted(),
    listRequests,
    /** Each kind of request that it made, sorted. */
    listUsed: () => [...new Set(listRequests().map(({ request }) => request))].toSorted(),
    /** Requests that the Role did not allow. */
    listForbidden: () => listRequests().filter(({ code }) => code === 403),
  };
}
