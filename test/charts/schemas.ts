import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { getModule } from '../../apps/dev/servers/build-with-go.ts';
import { cacheFolder, provideFolder } from '../../apps/dev/servers/cache-folder.ts';
import { getTool } from '../../charts/tools.ts';

/** The Kubernetes versions whose API the charts are checked against: the oldest and newest supported. */
export const kubernetesVersions = ['v1.30.14', 'v1.36.3'] as const;
/** The CRDs of their objects. */
const crds = [
  ['sigs.k8s.io/gateway-api@v1.4.1', 'config/crd/standard/gateway.networking.k8s.io_httproutes.yaml'],
  [
    'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    'example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml',
  ],
  [
    'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    'example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml',
  ],
] as const;

const kubeconform = await getTool('kubeconform');

type Schema = Record<string, unknown>;
interface Kind {
  group: string;
  version: string;
  kind: string;
}

/**
 * Returns a folder of strict JSON schemas for kubeconform, one per kind:
 * `<kind>-<group>-<version>.json`. They are created once, from the OpenAPI document and CRDs in the
 * Go modules of the API server and the operators.
 */
export function getSchemas(version: (typeof kubernetesVersions)[number] = 'v1.36.3'): Promise<string> {
  return keepSchemas(version, (write) => {
    writeBuiltIn(version, write);
    for (const [module, file] of crds) writeCrd(readFileSync(path.join(getModule(module), file), 'utf8'), write);
  });
}

/**
 * Returns what kubeconform says about objects when a Kubernetes version does not decode all of
 * them, strictly; else nothing.
 */
export async function listUndecoded(
  objects: readonly object[],
  version: (typeof kubernetesVersions)[number],
): Promise<string[]> {
  const folders = [await getSchemas(version), await getOwnSchemas()];
  const locations = folders.flatMap((one) => ['-schema-location', `${one}/{{.ResourceKind}}{{.KindSuffix}}.json`]);
  const input = objects.map((one) => JSON.stringify(one)).join('\n---\n');
  const options = ['-strict', '-summary', ...locations];
  const { stdout } = spawnSync(kubeconform, options, { input, encoding: 'utf8', maxBuffer: 2 ** 26 });
  const lines = stdout.trim().split('\n');
  return lines.at(-1)?.includes('Invalid: 0, Errors: 0, Skipped: 0') === true ? [] : lines;
}

/** The same for the definitions in charts/org-api-crds. */
export function getOwnSchemas(): Promise<string> {
  const folder = path.join(import.meta.dirname, '../../charts/org-api-crds/templates');
  const texts = readdirSync(folder).map((name) => readFileSync(path.join(folder, name), 'utf8'));
  const hash = createHash('sha256').update(texts.join()).digest('hex').slice(0, 16);
  return keepSchemas(`own-${hash}`, (write) => {
    for (const text of texts) writeCrd(text, write);
  });
}

/**
 * The same for the kinds with which Argo CD and Flux deploy. The module of Flux that declares
 * HelmRelease has only Go types, so its definition is generated from them, as Flux does.
 */
export async function getDeployerSchemas(): Promise<string> {
  const generator = await getTool('controller-gen');
  return keepSchemas('deployers-1', (write) => {
    for (const [module, file] of deployerCrds)
      writeCrd(readFileSync(path.join(getModule(module), file), 'utf8'), write);
    const generate = ['crd', 'paths=./v2/...', 'output:crd:stdout'];
    const { status, stdout, stderr } = spawnSync(generator, generate, {
      cwd: getModule('github.com/fluxcd/helm-controller/api@v1.5.0'),
      env: { ...process.env, GOFLAGS: '-mod=readonly', GOWORK: 'off' },
      encoding: 'utf8',
      maxBuffer: 16 * 1024 * 1024,
    });
    if (status !== 0) throw new Error(`controller-gen: ${stderr}`);
    writeCrd(stdout, write);
  });
}

const deployerCrds = [
  ['github.com/argoproj/argo-cd/v3@v3.3.0', 'manifests/crds/application-crd.yaml'],
  ['github.com/fluxcd/source-controller@v1.8.0', 'config/crd/bases/source.toolkit.fluxcd.io_gitrepositories.yaml'],
] as const;

type WriteSchema = (kind: Kind, schema: Schema) => void;

async function keepSchemas(name: string, writeAll: (write: WriteSchema) => void): Promise<string> {
  const folder = cacheFolder('chart-tools', `schemas-${name}`);
  await provideFolder(folder, (draft) => {
    writeAll(({ group, version, kind }, schema) => {
      const file = [kind, group.split('.')[0], version].filter(Boolean).join('-').toLowerCase();
      writeFileSync(path.join(draft, `${file}.json`), JSON.stringify(schema));
    });
    return true;
  });
  return folder;
}

function writeBuiltIn(version: string, write: WriteSchema): void {
  const file = path.join(getModule(`k8s.io/kubernetes@${version}`), 'api/openapi-spec/swagger.json');
  const { definitions } = JSON.parse(readFileSync(file, 'utf8')) as { definitions: Record<string, Schema> };
  const strict = Object.fromEntries(Object.entries(definitions).map(([name, schema]) => [name, makeStrict(schema)]));
  for (const [name, schema] of Object.entries(definitions))
    for (const kind of (schema['x-kubernetes-group-version-kind'] as Kind[] | undefined) ?? [])
      write(kind, {
        ...strict[name],
        definitions: Object.fromEntries([...reach(name, strict)].map((one) => [one, strict[one]])),
      });
}

/** Returns the names of all definitions that one refers to, including itself. */
function reach(from: string, definitions: Record<string, Schema | undefined>): Set<string> {
  const reached = new Set([from]);
  for (const name of reached) // the set grows during the iteration
    for (const [, other = ''] of JSON.stringify(definitions[name]).matchAll(/"#\/definitions\/([^"]+)"/g))
      reached.add(other);
  return reached;
}

function writeCrd(text: string, write: WriteSchema): void {
  const { spec } = parse(text);
  for (const { name, schema } of spec.versions) {
    const root = makeStrict(schema.openAPIV3Schema) as { properties: Schema };
    write(
      { group: spec.group, version: name, kind: spec.names.kind },
      { ...root, properties: { ...root.properties, metadata: { type: 'object' } } },
    );
  }
}

/**
 * Rejects unknown fields wherever the fields are listed, and permits numbers where Kubernetes
 * accepts them for text.
 */
function makeStrict(schema: unknown): Schema {
  if (Array.isArray(schema)) return schema.map(makeStrict) as unknown as Schema;
  if (typeof schema !== 'object' || schema === null) return schema as unknown as Schema;
  const { format, ...own } = schema as Schema;
  if (format === 'int-or-string' || own['x-kubernetes-int-or-string'] === true) return { type: ['integer', 'string'] };
  if (typeof own.description === 'string' && own.description.startsWith('Quantity is'))
    return { type: ['number', 'string'] };
  delete own.description;
  const inner = Object.fromEntries(Object.entries(own).map(([key, value]) => [key, makeStrict(value)]));
  const isListed =
    'properties' in inner && own['x-kubernetes-preserve-unknown-fields'] !== true && !('additionalProperties' in inner);
  return isListed ? { ...inner, additionalProperties: false } : inner;
}
