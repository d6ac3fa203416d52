import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { cacheFolder, provideFolder } from '../../../apps/dev/servers/cache-folder.ts';
import { run } from '../../../charts/image/buildah.ts';
import { provideTool } from '../../../charts/tools.ts';

/** A Go module: what is built, and the exact versions of all that it is built from. */
const source = path.join(import.meta.dirname, 'programs');

/** The names under which `components` is started. */
const components = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-proxy',
  'kube-scheduler',
  'kubectl',
  'kubelet',
  'metrics-server',
] as const;

/** A program of the node. */
export type Program = (typeof components)[number] | 'dns' | 'pause';

/**
 * Returns the folder of the programs of a Kubernetes node. They are built by Go once for each
 * version of their source, for every clone of this user: about five minutes on two cores, with an
 * empty cache of Go. Helm is built with them, because it has most packages in common.
 *
 * @throws Error when Go is missing or fails.
 */
export async function getPrograms(report: (line: string) => void): Promise<string> {
  const folder = cacheFolder(`kubernetes-${fingerprint()}`);
  await provideFolder(folder, (draft) => build(draft, report));
  provideTool('helm', path.join(folder, 'helm'));
  return folder;
}

/** Returns a short digest of the module and of Go's version. */
function fingerprint(): string {
  const digest = createHash('sha256').update(go(['env', 'GOVERSION']));
  const files = readdirSync(source, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  for (const file of files.map(({ parentPath, name }) => path.join(parentPath, name)).toSorted())
    digest.update(`${path.relative(source, file)}\n`).update(readFileSync(file));
  return digest.digest('hex').slice(0, 16);
}

function build(folder: string, report: (line: string) => void): true {
  const version = readVersion('k8s.io/kubernetes');
  report(`building Kubernetes ${version} with Go (about five minutes with an empty cache, once)`);
  buildInto(folder, './components', versionFlags(['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version']));
  const helmFlags = ['pkg/chartutil', 'pkg/lint/rules'].flatMap((one) =>
    minorFlags(`helm.sh/helm/v3/${one}.k8sVersion`),
  );
  helmFlags.push(`-X helm.sh/helm/v3/internal/version.version=${readVersion('helm.sh/helm/v3')}`);
  buildInto(folder, 'helm.sh/helm/v3/cmd/helm', helmFlags);
  for (const name of ['./dns', './pause']) buildInto(folder, name, []);
  for (const name of components) symlinkSync('components', path.join(folder, name));
  return true;
}

/** Builds without debug information, which halves the programs and the time to link them. */
function buildInto(folder: string, target: string, flags: readonly string[]): void {
  const small = ['-trimpath', '-buildvcs=false', '-gcflags=all=-dwarf=false', `-ldflags=-s -w ${flags.join(' ')}`];
  go(['build', '-mod=readonly', ...small, '-o', `${folder}/`, target]);
}

/** Charts that ask for a version of Kubernetes reject one that does not know its own. */
function versionFlags(packages: readonly string[]): string[] {
  const version = readVersion('k8s.io/kubernetes');
  return packages.flatMap((one) => [`-X ${one}.gitVersion=${version}`, ...minorFlags(`${one}.git`)]);
}

function minorFlags(prefix: string): string[] {
  const [major = '', minor = ''] = readVersion('k8s.io/kubernetes').slice(1).split('.');
  return [`-X ${prefix}Major=${major}`, `-X ${prefix}Minor=${minor}`];
}

/** Returns the version of a module, for example `v1.36.3`. */
function readVersion(module: string): string {
  const found = readFileSync(path.join(source, 'go.mod'), 'utf8')
    .split('\n')
    .map((line) => line.trim().split(' '))
    .find(([name]) => name === module);
  if (found?.[1] === undefined) throw new Error(`${module} is not in go.mod`);
  return found[1];
}

const go = (args: readonly string[]): string =>
  run('go', args, { cwd: source, env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '' } });
