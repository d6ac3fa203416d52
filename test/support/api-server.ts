import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type KubeConfig, KubernetesObjectApi, PatchStrategy } from '@kubernetes/client-node';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { ReusedKubeConfig } from '../../apps/operator/kube/kube-config.ts';
import { getPrograms } from '../cluster/kubernetes/programs.ts';
import { endChild } from './end-child.ts';
import { allowSockets } from './socket-guard.ts';

const execute = promisify(execFile);
/** Programs of Kubernetes, which `npm run test:operator` has built. */
export const kubernetesBin = await getPrograms(console.error);
const definitions = path.join(import.meta.dirname, '../../charts/org-api-crds/templates');

/** A Kubernetes API server with etcd, without nodes and controllers. */
export interface ApiServer {
  /** Kubeconfig of an administrator, whose requests the audit log leaves out. */
  kubeConfig: KubeConfig;
  /** Kubeconfig with all rights, for operators whose requests are counted. */
  operatorConfig: KubeConfig;
  /** Returns the audited requests in a namespace, oldest first. */
  readAuditLog(namespace: string): AuditedRequest[];
  /** A file on this machine. */
  port: number;
  /** Creates or changes an object as a person would. */
  apply(object: object): Promise<void>;
  /** Creates the operator's definitions, and waits until their kinds are served. */
  applyDefinitions(): Promise<void>;
  /** Runs kubectl as an administrator, and returns its output. */
  kubectl(args: readonly string[]): Promise<string>;
  /** Pauses the API server's process as if its machine froze, and continues it. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

/** A request that the API server answered, or a watch that started. */
export interface AuditedRequest {
  user: string;
  /** Such as `list`, `watch`, `patch`. */
  verb: string;
  /** Such as `regions/status`. */
  resource: string;
  /** HTTP status of the response. */
  code: number;
}

/** Logs each request, except those of the tests and of the API server, without bodies. */
const auditPolicy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'None', users: ['admin', 'system:apiserver', 'system:anonymous'] }, { level: 'Metadata' }],
};

/**
 * Starts an API server with the operator's definitions. @throws Error when it does not start.
 */
export async function startApiServer(): Promise<ApiServer> {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-server-'));
  const [etcdPort, peerPort, port] = await Promise.all([getFreePort(), getFreePort(), getFreePort()]);
  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  const peerUrl = `http://127.0.0.1:${peerPort}`;
  const keyFile = path.join(folder, 'service-account.key');
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  writeFileSync(keyFile, privateKey.export({ type: 'pkcs1', format: 'pem' }));
  const users = ['admin', 'operator'];
  const tokens = users.map((user) => `${user}-token,${user},${user},system:masters\n`);
  writeFileSync(path.join(folder, 'tokens.csv'), tokens.join(''));
  const auditLog = path.join(folder, 'audit.log');
  writeFileSync(path.join(folder, 'audit-policy.json'), JSON.stringify(auditPolicy));
  const etcd = run('etcd', folder, [
    `--data-dir=${path.join(folder, 'etcd')}`,
    '--unsafe-no-fsync',
    '--log-level=error',
    `--listen-client-urls=${etcdUrl}`,
    `--advertise-client-urls=${etcdUrl}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=default=${peerUrl}`,
  ]);
  const server = run('kube-apiserver', folder, [
    `--etcd-servers=${etcdUrl}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    `--cert-dir=${path.join(folder, 'certificates')}`,
    '--service-cluster-ip-range=10.0.0.0/24',
    '--authorization-mode=RBAC',
    `--token-auth-file=${path.join(folder, 'tokens.csv')}`,
    '--service-account-issuer=https://localhost',
    `--service-account-key-file=${keyFile}`,
    `--service-account-signing-key-file=${keyFile}`,
    '--disable-admission-plugins=ServiceAccount',
    `--audit-policy-file=${path.join(folder, 'audit-policy.json')}`,
    `--audit-log-path=${auditLog}`,
    '--audit-log-mode=blocking', // a request is in the file before its response
  ]);
  allowSockets('API server', `https://127.0.0.1:${port}`);
  const [kubeConfig, operatorConfig] = users.map((name) => createKubeConfig(port, name, `${name}-token`));
  if (kubeConfig === undefined || operatorConfig === undefined) throw new Error('there are two users');
  const objects = KubernetesObjectApi.makeApiClient(kubeConfig);
  const apply = async (object: object): Promise<void> => {
    await objects.patch(object, undefined, undefined, 'kubectl', true, PatchStrategy.ServerSideApply);
  };
  const configFile = path.join(folder, 'kubeconfig.json');
  writeFileSync(configFile, kubeConfig.exportConfig());
  const kubectl = async (args: readonly string[]): Promise<string> =>
    (await execute(path.join(kubernetesBin, 'kubectl'), ['--kubeconfig', configFile, ...args])).stdout;
  const applyDefinitions = async (): Promise<void> => {
    // With kubectl, because the library's serializer drops schema keywords that are reserved words
    // of JavaScript.
    await retry(async () => void (await kubectl(['apply', '--server-side', '-f', definitions])), server, folder);
    await retry(() => waitForKinds(objects), server, folder);
  };
  const stop = async (): Promise<void> => {
    for (const child of [server, etcd]) await endChild(child);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await applyDefinitions();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    kubeConfig,
    operatorConfig,
    port,
    readAuditLog: (namespace) => readRequests(auditLog, namespace),
    apply,
    applyDefinitions,
    kubectl,
    freeze: () => server.kill('SIGSTOP'),
    thaw: () => server.kill('SIGCONT'),
    stop,
  };
}

/** Returns a user's kubeconfig for an API server on this machine. */
export function createKubeConfig(port: number, name: string, token: string): KubeConfig {
  const kubeConfig = new ReusedKubeConfig();
  const server = `https://127.0.0.1:${port}`;
  kubeConfig.loadFromClusterAndUser({ name: 'test', server, skipTLSVerify: true }, { name, token });
  return kubeConfig;
}

interface AuditEvent {
  stage: string;
  verb: string;
  user: { username: string };
  objectRef?: { namespace?: string; resource: string; subresource?: string };
  responseStatus?: { code: number };
}

/** A watch is counted when it starts, other requests when they have ended. */
function readRequests(file: string, namespace: string): AuditedRequest[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  const events = lines.map((line) => JSON.parse(line) as AuditEvent);
  return events
    .filter(({ stage, verb, objectRef }) => {
      const isCounted = stage === (verb === 'watch' ? 'ResponseStarted' : 'ResponseComplete');
      return isCounted && objectRef?.namespace === namespace;
    })
    .map(({ verb, user, objectRef, responseStatus }) => ({
      user: user.username,
      verb,
      resource: [objectRef?.resource, objectRef?.subresource].filter(Boolean).join('/'),
      code: responseStatus?.code ?? 0,
    }));
}

/** @throws Error until the API server serves the kinds of the definitions. */
async function waitForKinds(objects: KubernetesObjectApi): Promise<void> {
  const { items } = await objects.list('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
  for (const item of items) {
    const { status } = item as { status?: { conditions?: { type: string; status: string }[] } };
    if (!status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True'))
      throw new Error('a definition is not established yet');
  }
}

function run(program: string, folder: string, args: string[]): ChildProcess {
  const child = spawn(path.join(kubernetesBin, program), args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const log = path.join(folder, `${program}.log`);
  child.stderr?.setEncoding('utf8').on('data', (text: string) => writeFileSync(log, text, { flag: 'a' }));
  return child;
}

async function retry(step: () => Promise<void>, server: ChildProcess, folder: string): Promise<void> {
  const giveUpAt = performance.now() + 90_000;
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (performance.now() > giveUpAt || server.exitCode !== null) {
        const log = readFileSync(path.join(folder, 'kube-apiserver.log'), 'utf8');
        throw new Error(`the API server did not start: ${log.slice(-1_000)}`, { cause: error });
      }
      await wait(200);
    }
  }
}

let next = 0;

export async function createNamespace(server: Pick<ApiServer, 'apply'>): Promise<string> {
  next += 1;
  const name = `test-${process.pid}-${next}`;
  await server.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  return name;
}
