import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { request as sendRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { makeCertificate } from '#test/certificates.ts';
import { getTool } from '../../charts/tools.ts';
import type { Cluster } from './cluster.ts';
import { runCommand } from './command.ts';

const name = 'ingress-controller';
const className = 'skipper';
const tlsSecretName = 'ingress-certificate';
const ports = { https: 9443, metrics: 9911 };

/** Base URLs that go through the Ingresses of a release. */
export interface Routes {
  api: string;
  console: string;
}

/** An Ingress controller in a separate namespace. */
export interface IngressController {
  /** Values with which only the controller can reach a release. */
  values: Record<string, unknown>;
  /**
   * Returns the base URL of a proxy on this machine that sends requests to the controller by TLS,
   * under the host name of `origin`. It replaces DNS.
   */
  open(origin: string): Promise<string>;
  /** Closes what `open` opened, and deletes the controller. */
  stop(): Promise<void>;
}

/**
 * Starts the Ingress controller skipper for the Ingresses of `namespace`, with a certificate for
 * `origins`, and resolves when it listens.
 */
export async function startIngressController(
  cluster: Cluster,
  { namespace, origins }: { namespace: string; origins: readonly string[] },
): Promise<IngressController> {
  const own = `${namespace}-ingress`;
  const authority = makeCertificate({ subject: 'cluster test', isAuthority: true });
  const names = origins.map((origin) => new URL(origin).hostname);
  const certificate = makeCertificate({ subject: 'ingress', names, issuer: authority });
  const closers: (() => Promise<void> | void)[] = [
    async () => void (await cluster.kubectl(['delete', 'namespace', own, '--ignore-not-found', '--timeout=90s'])),
  ];
  const stop = async () => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  try {
    const image = await buildControllerImage(cluster);
    await cluster.apply(namespace, [buildSecret(certificate), ...listRights(own)]);
    await cluster.apply(own, listObjects({ own, image, watched: namespace }));
    await cluster.kubectl(['rollout', 'status', `deployment/${name}`, '-n', own, '--timeout=90s']);
    const find = (kind: string, field: string) =>
      cluster.kubectl(['get', kind, '-n', own, '-l', `app=${name}`, '-o', `jsonpath={.items[0]${field}}`]);
    const proxies = [await find('pods', '.status.podIP')];
    const host = await find('services', '.spec.clusterIP');
    const app = { ingress: { enabled: true, className, tlsSecretName }, trustedProxies: proxies };
    const from = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': own } } }];
    return {
      values: { api: app, console: app, networkPolicy: { http: { from } } },
      async open(origin) {
        const proxy = await startProxy({ host, ca: authority.cert, servername: new URL(origin).hostname });
        closers.push(proxy.stop);
        return proxy.url;
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Builds an image that contains only skipper, and loads it. Returns its name. */
async function buildControllerImage(cluster: Cluster): Promise<string> {
  const image = 'localhost/skipper:test';
  const work = mkdtempSync(path.join(tmpdir(), 'org-api-skipper-'));
  const buildah = (...args: string[]) => runCommand('buildah', args, { env: process.env, timeoutMs: 300_000 });
  const container = (await buildah('from', 'scratch')).trim();
  try {
    await buildah('copy', container, await getTool('skipper'), '/skipper');
    await buildah('config', '--user', '65532:65532', '--entrypoint', '["/skipper"]', container);
    const committed = (await buildah('commit', '--quiet', container, image)).trim();
    const archive = path.join(work, 'image.tar');
    await buildah('push', '--quiet', committed, `docker-archive:${archive}:${image}`);
    await cluster.loadImages([archive]);
  } finally {
    await buildah('rm', container).catch(() => {});
    rmSync(work, { recursive: true, force: true });
  }
  return image;
}

const buildSecret = ({ cert, key }: { cert: string; key: string }) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  type: 'kubernetes.io/tls',
  metadata: { name: tlsSecretName },
  stringData: { 'tls.crt': cert, 'tls.key': key },
});

/** The controller's rights in the namespace of the releases. */
function listRights(own: string): object[] {
  const read = (apiGroup: string, ...resources: string[]) => ({
    apiGroups: [apiGroup],
    resources,
    verbs: ['get', 'list'],
  });
  return [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name },
      rules: [
        read('', 'services', 'endpoints', 'secrets'),
        read('discovery.k8s.io', 'endpointslices'),
        read('networking.k8s.io', 'ingresses'),
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace: own }],
    },
  ];
}

function listObjects({ own, image, watched }: { own: string; image: string; watched: string }): object[] {
  const labels = { app: name };
  const args = [
    '-kubernetes',
    '-kubernetes-in-cluster',
    `-kubernetes-namespace=${watched}`,
    `-kubernetes-ingress-class=${className}`,
    '-kubernetes-enable-tls',
    '-kubernetes-https-redirect=false',
    '-enable-kubernetes-endpointslices',
    '-forwarded-headers=X-Forwarded-For,X-Forwarded-Proto=https',
    `-address=:${ports.https}`,
    `-support-listener=:${ports.metrics}`,
  ];
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: own } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, labels },
      spec: { selector: labels, ports: [{ port: 443, targetPort: ports.https }] },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: name,
            terminationGracePeriodSeconds: 0,
            containers: [
              {
                name,
                image,
                imagePullPolicy: 'IfNotPresent',
                args,
                readinessProbe: { tcpSocket: { port: ports.https }, periodSeconds: 1 },
              },
            ],
          },
        },
      },
    },
  ];
}

/**
 * Forwards each request by TLS on a new connection, because a kept one that the controller is
 * closing would fail a read. Answers 502 with the reason when the controller gives no response.
 */
async function startProxy(target: {
  host: string;
  ca: string;
  servername: string;
}): Promise<{ url: string; stop: () => void }> {
  const { servername } = target;
  const server = createServer((request, response) => {
    const { method, url: requested, headers } = request;
    const options = { ...target, port: 443, agent: false, method, path: requested };
    const sent = sendRequest({ ...options, headers: { ...headers, host: servername } }, (upstream) => {
      response.writeHead(upstream.statusCode ?? 502, upstream.headers);
      response.flushHeaders();
      upstream.on('error', () => response.destroy()).pipe(response);
    });
    sent.on('error', (error) => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end(error.message);
    });
    response.on('close', () => sent.destroy());
    request.pipe(sent);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
