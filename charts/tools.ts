import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { buildWithGo, type GoProgram } from '../apps/dev/servers/build-with-go.ts';
import { cacheFolder, provideFolder } from '../apps/dev/servers/cache-folder.ts';
import type { Report } from '../apps/dev/servers/process.ts';

/** A program that tests or benchmarks need, and the arguments that show whether it runs. */
interface Tool extends GoProgram {
  probe: readonly string[];
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

/** Programs that this process has found, or not found. */
const found = new Map<ToolName, Promise<string | null>>();

/**
 * Returns the program's path: from PATH, from the cache, or built by Go into the cache, which is
 * reported. Null when it cannot be installed.
 */
export function findTool(name: ToolName): Promise<string | null> {
  const program = found.get(name) ?? locate(name, (line) => void process.stderr.write(`${line}\n`));
  found.set(name, program);
  return program;
}

async function locate(name: ToolName, report: Report): Promise<string | null> {
  if (runs(name, name)) return name;
  const cached = cachedTool(name);
  const fill = (draft: string) => buildWithGo(name, tools[name], draft, report);
  const isProvided = await provideFolder(path.dirname(cached), fill, { isThere: () => runs(cached, name) });
  return isProvided ? cached : null;
}

const cachedTool = (name: ToolName): string => cacheFolder('chart-tools', `${name}-${tools[name].version}`, name);

/**
 * Makes a program that was built elsewhere, in the same version, the cached one if there is none. It
 * does not wait for a process that builds one: who waits for that then finds this one.
 */
export function provideTool(name: ToolName, program: string): void {
  const folder = path.dirname(cachedTool(name));
  if (existsSync(folder)) return;
  mkdirSync(path.dirname(folder), { recursive: true });
  const draft = mkdtempSync(`${folder}-`);
  try {
    copyFileSync(program, path.join(draft, name));
    renameSync(draft, folder);
  } catch (error) {
    rmSync(draft, { recursive: true });
    if (!existsSync(folder)) throw error; // another process was faster
  }
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

function runs(program: string, name: ToolName): boolean {
  return spawnSync(program, tools[name].probe, { stdio: 'ignore' }).status === 0;
}
