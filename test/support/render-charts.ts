import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { getTool } from '../../charts/tools.ts';

/**
 * Found when the file is loaded, outside the time limit of a test, because on a new machine it is
 * built first.
 */
const helm = await getTool('helm');

/** The chart's folder. */
export const chart = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../charts/org-api');
/** The regions that CI renders and installs. */
export const regions = ['us', 'ca'] as const;

/** `networkPolicy` of the operator's chart, which requires the peers. */
export const operatorPeers = {
  apiServer: { to: [{ ipBlock: { cidr: '10.40.0.2/32' } }] },
  database: { to: [{ podSelector: { matchLabels: { 'cnpg.io/cluster': 'org-api-us' } } }] },
  temporal: { to: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'temporal' } } }] },
};

/** The values that the operator's chart requires. */
export const operatorValues = {
  image: { repository: 'registry.example.com/org-api' },
  networkPolicy: operatorPeers,
};

/** A rendered Kubernetes object; tests read `spec` and the like. */
// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds, whose form kubeconform checks
export type Manifest = any;

/** The values of `ci/<region>-values.yaml`, or none, with others on top. */
export interface RenderOptions {
  region?: 'us' | 'ca' | null;
  values?: object;
  release?: string;
  namespace?: string;
  /** More arguments of `helm template`. */
  args?: readonly string[];
  /** Path of another chart. */
  from?: string;
}

/** Rendering takes a fifth of a second, and tests of one file often need the same objects. */
const rendered = new Map<string, string>();

/** Returns the output of `helm template`. @throws Helm's error when the values are invalid. */
export function renderText(options: RenderOptions = {}): string {
  const known = rendered.get(JSON.stringify(options));
  if (known !== undefined) return known;
  const { status, stdout, stderr } = template(options);
  if (status !== 0) throw new Error(stderr);
  rendered.set(JSON.stringify(options), stdout);
  return stdout;
}

/** Parsed outputs: parsing takes as long as rendering. */
const parsed = new Map<string, Manifest[]>();

/** Returns all objects of a release, including those of `helm test`: a copy for each caller. */
export function render(options: RenderOptions = {}): Manifest[] {
  const text = renderText(options);
  const known = parsed.get(text) ?? parseManifests(text);
  parsed.set(text, known);
  return structuredClone(known);
}

const parseManifests = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => {
      const [problem] = document.errors;
      if (problem !== undefined) throw problem;
      return document.toJS() as Manifest;
    })
    .filter((manifest) => manifest !== null);

/** Returns Helm's error for invalid values, or ''. */
export function findRenderError(values: object, region: RenderOptions['region'] = 'us'): string {
  return template({ values, region }).stderr;
}

/**
 * Returns the only object of a kind with this suffix of its name. @throws when there is none or
 * more.
 */
export function pick(manifests: readonly Manifest[], kind: string, suffix = ''): Manifest {
  const found = manifests.filter((one) => one.kind === kind && one.metadata.name.endsWith(suffix));
  if (found.length !== 1) throw new Error(`${found.length} objects are a ${kind} …${suffix}`);
  return found[0];
}

/** Returns all objects of a kind. */
export function ofKind(manifests: readonly Manifest[], kind: string): Manifest[] {
  return manifests.filter((one) => one.kind === kind);
}

/** Returns the specs of all pods, by the name of the object that creates them. */
export function listPods(
  manifests: readonly Manifest[],
): { name: string; labels: Record<string, string>; spec: Manifest }[] {
  return manifests.flatMap((one) => {
    const pod =
      one.kind === 'Pod' ? one : one.spec?.template?.spec?.containers === undefined ? null : one.spec.template;
    return pod === null ? [] : [{ name: one.metadata.name, labels: pod.metadata.labels, spec: pod.spec }];
  });
}

function template({ region = 'us', values = {}, release, namespace, args = [], from = chart }: RenderOptions) {
  const own = region === null ? [] : ['--values', path.join(chart, 'ci', `${region}-values.yaml`)];
  const name = release ?? region ?? 'us';
  return spawnSync(
    helm,
    ['template', name, from, '--namespace', namespace ?? `org-api-${name}`, ...own, '--values', '-', ...args],
    { input: JSON.stringify(values), encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  );
}
