import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { cacheFolder } from '../apps/dev/servers/cache-folder.ts';
import { provideOnce } from '../apps/dev/state-lock.mjs';

/** A program that tests or benchmarks need, and the Go package that it is built from. */
interface Tool {
  package: string;
  version: string;
  /** Arguments that show whether the program runs. */
  probe: readonly string[];
  flags?: readonly string[];
  /**
   * For a program whose module replaces others, which `go install` refuses: it is built inside this
   * module.
   */
  inModule?: string;
}

/**
 * The Kubernetes version that helm renders charts for. Helm's own releases are built with it;
 * otherwise helm reports 1.20.
 */
export const kubernetesMinor = 36;
const helmFlags = ['pkg/chartutil', 'pkg/lint/rules'].flatMap((folder) => [
  `-X helm.sh/helm/v3/${folder}.k8sVersionMajor=1`,
  `-X helm.sh/helm/v3/${folder}.k8sVersionMinor=${kubernetesMinor}`,
]);

/** The programs by name. */
export const tools = {
  helm: {
    package: 'helm.sh/helm/v3/cmd/helm',
    version: 'v3.21.4',
    probe: ['version', '--short'],
    flags: ['-ldflags', helmFlags.join(' ')],
  },
  kubeconform: { package: 'github.com/yannh/kubeconform/cmd/kubeconform', version: 'v0.7.0', probe: ['-v'] },
  'kube-score': { package: 'github.com/zegl/kube-score/cmd/kube-score', version: 'v1.20.0', probe: ['version'] },
  'kube-linter': { package: 'golang.stackrox.io/kube-linter/cmd/kube-linter', version: 'v0.7.5', probe: ['version'] },
  // Lints .github/workflows.
  actionlint: { package: 'github.com/rhysd/actionlint/cmd/actionlint', version: 'v1.7.12', probe: ['-version'] },
  // The Lua interpreter with which Argo CD runs health scripts.
  glua: { package: 'github.com/yuin/gopher-lua/cmd/glua', version: 'v1.1.2', probe: ['-v'] },
  // Generates the definition of a custom resource from Go types.
  'controller-gen': {
    package: 'sigs.k8s.io/controller-tools/cmd/controller-gen',
    version: 'v0.20.0',
    probe: ['--version'],
  },
  // Enforces NetworkPolicies in test/cluster.
  'kube-router': {
    package: 'github.com/cloudnativelabs/kube-router/cmd/kube-router',
    version: 'v1.6.1',
    probe: ['--version'],
    inModule: 'github.com/cloudnativelabs/kube-router',
  },
  // Routes to Ingresses in test/cluster.
  skipper: {
    package: 'github.com/zalando/skipper/cmd/skipper',
    version: 'v0.21.0',
    probe: ['-version'],
    inModule: 'github.com/zalando/skipper',
    flags: ['-ldflags', '-s -w'],
  },
  // v0.313.5 is Prometheus 3.13.5. Without service discovery: 2.5 minutes of processor time with an
  // empty cache of Go, and not far more.
  promtool: {
    package: 'github.com/prometheus/prometheus/cmd/promtool',
    version: 'v0.313.5',
    probe: ['--version'],
    inModule: 'github.com/prometheus/prometheus',
    flags: ['-tags', 'remove_all_sd'],
  },
} as const satisfies Record<string, Tool>;

/** The names of the programs. */
export type ToolName = keyof typeof tools;

/** Programs that this process has looked for. */
const found = new Map<ToolName, Promise<string | null>>();

/**
 * Returns the program's path: from PATH, from the cache, or built by Go into the cache, which is
 * reported. Null when it cannot be installed.
 */
export function findTool(name: ToolName): Promise<string | null> {
  const known = found.get(name) ?? look(name, (line) => void process.stderr.write(`${line}\n`));
  found.set(name, known);
  return known;
}

async function look(name: ToolName, report: (line: string) => void): Promise<string | null> {
  if (runs(name, name)) return name;
  const cached = cachedTool(name);
  const isProvided = await provideOnce(`${path.dirname(cached)}.lock`, {
    isThere: () => runs(cached, name),
    provide: () => build(name, cached, report),
  });
  return isProvided ? cached : null;
}

const cachedTool = (name: ToolName): string => cacheFolder('chart-tools', `${name}-${tools[name].version}`, name);

/** Makes a program that was built elsewhere, in the same version, the cached one if there is none. */
export function provideTool(name: ToolName, program: string): void {
  const cached = cachedTool(name);
  if (existsSync(cached)) return;
  mkdirSync(path.dirname(cached), { recursive: true });
  copyFileSync(program, `${cached}.${process.pid}`);
  renameSync(`${cached}.${process.pid}`, cached);
}

/** Returns the program's path. @throws Error with the remedy when it cannot be installed. */
export async function getTool(name: ToolName): Promise<string> {
  const program = await findTool(name);
  if (program !== null) return program;
  const { package: source, version } = tools[name];
  throw new Error(
    `${name} cannot be had: put it on PATH, or install Go, with which it is built from ${source}@${version}.`,
  );
}

/**
 * Returns the folder of a Go module's files, which Go downloads if needed.
 *
 * @throws Error with Go's message.
 */
export function getModule(module: string): string {
  const { status, stdout, stderr } = spawnSync('go', ['mod', 'download', '-json', module], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`Go could not download ${module}, whose schemas are needed: ${stderr || stdout}`);
  return (JSON.parse(stdout) as { Dir: string }).Dir;
}

function runs(program: string, name: ToolName): boolean {
  return spawnSync(program, tools[name].probe, { stdio: 'ignore' }).status === 0;
}

function build(name: ToolName, target: string, report: (line: string) => void): boolean {
  const { package: source, version, flags = [], inModule }: Tool = tools[name];
  if (spawnSync('go', ['version']).status !== 0) return false;
  // Without C, so that a program also runs in an image that contains nothing else.
  const env = { ...process.env, CGO_ENABLED: '0' };
  report(`${name}: not found; building ${source}@${version} with Go (one to six minutes, once)`);
  const folder = `${path.dirname(target)}.${process.pid}`;
  const built =
    inModule === undefined
      ? spawnSync('go', ['install', ...flags, `${source}@${version}`], {
          env: { ...env, GOBIN: folder },
          encoding: 'utf8',
        })
      : spawnSync('go', ['build', '-mod=readonly', ...flags, '-o', path.join(folder, name), source], {
          cwd: getModule(`${inModule}@${version}`),
          // the module's own workspace names folders that its archive does not contain
          env: { ...env, GOWORK: 'off' },
          encoding: 'utf8',
        });
  if (built.status === 0) {
    mkdirSync(path.dirname(target), { recursive: true });
    renameSync(path.join(folder, name), target);
  } else report(`${name}: Go could not build it: ${built.stderr.trim().split('\n').at(-1) ?? ''}`);
  rmSync(folder, { recursive: true, force: true });
  return built.status === 0;
}
