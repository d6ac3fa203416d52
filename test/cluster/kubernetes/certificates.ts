import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { makeCertificate } from '#test/certificates.ts';
import { inState, kubeconfigFile, node } from './node.ts';

/** Those who call the API server, with their groups: each has a token. */
const users = {
  admin: ['system:masters'],
  'system:kube-controller-manager': [],
  'system:kube-scheduler': [],
  'system:kube-proxy': [],
  'system:node:node1': ['system:nodes'],
} as const satisfies Record<string, readonly string[]>;

/** A caller of the API server. */
export type User = Exclude<keyof typeof users, number>;

/** Returns the file with a user's access to the API server. */
export const getKubeconfig = (user: User): string =>
  user === 'admin' ? kubeconfigFile : inState(`${user.replaceAll(':', '-')}.kubeconfig`);

/** Returns the files of a certificate and its key. */
export const getCertificate = (name: string) => ({ cert: inState(`${name}.crt`), key: inState(`${name}.key`) });

/** The file of the tokens, in the API server's format. */
export const tokensFile = inState('tokens.csv');

/** The common name by which the API server calls the kubelet. */
export const apiServerName = 'kube-apiserver';

/** Writes certificates, signing keys, tokens and the users' kubeconfigs. */
export function writeAccess(): void {
  const authority = makeCertificate({ subject: 'kubernetes', isAuthority: true, toDay: 30 });
  writePair('authority', authority);
  const api = ['', '.default', '.default.svc', '.default.svc.cluster.local'].map((end) => `kubernetes${end}`);
  const names = {
    [apiServerName]: [node.address, node.apiServiceAddress, ...api],
    kubelet: [node.address],
    'metrics-server': [node.address, 'metrics-server.kube-system.svc'],
    'front-proxy': [],
  };
  for (const [subject, allowed] of Object.entries(names))
    writePair(subject, makeCertificate({ subject, names: allowed, issuer: authority, toDay: 30 }));
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writePair('service-account', {
    cert: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    key: privateKey.export({ type: 'sec1', format: 'pem' }).toString(),
  });
  const lines = Object.entries(users).map(([user, groups]) => {
    const token = randomBytes(16).toString('hex');
    writeSecret(getKubeconfig(user as User), JSON.stringify(kubeconfig(user, token)));
    return `${token},${user},${user},"${groups.join(',')}"\n`;
  });
  writeSecret(tokensFile, lines.join(''));
}

function kubeconfig(user: string, token: string) {
  const name = 'org-api-test';
  const server = `https://${node.address}:6443`;
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, 'certificate-authority': getCertificate('authority').cert } }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name, context: { cluster: name, user } }],
    'current-context': name,
  };
}

function writePair(name: string, pair: { cert: string; key: string }): void {
  const files = getCertificate(name);
  writeFileSync(files.cert, pair.cert);
  writeSecret(files.key, pair.key);
}

const writeSecret = (file: string, text: string): void => writeFileSync(file, text, { mode: 0o600 });
