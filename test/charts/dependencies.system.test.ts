/** Both charts as parts of another chart, and under any name. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { chart, listPods, type Manifest, operatorValues, render } from '#test/render-charts.ts';
import { kubernetesVersions, listUndecoded } from './schemas.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'org-api-platform-'));
afterAll(() => rmSync(folder, { recursive: true }));

const names = ['org-api', 'org-api-operator'] as const;
mkdirSync(path.join(folder, 'charts'));
for (const name of names) cpSync(path.join(chart, '..', name), path.join(folder, 'charts', name), { recursive: true });
const dependencies = [
  { name: 'org-api', version: '*', condition: 'org-api.enabled' },
  { name: 'org-api', version: '*', alias: 'canada', condition: 'canada.enabled' },
  { name: 'org-api', version: '*', alias: 'canadaEast_2', condition: 'canadaEast_2.enabled' },
  { name: 'org-api', version: '*', alias: '_canada', condition: '_canada.enabled' },
  { name: 'org-api-operator', version: '*', condition: 'org-api-operator.enabled' },
];
writeFileSync(
  path.join(folder, 'Chart.yaml'),
  JSON.stringify({ apiVersion: 'v2', name: 'platform', version: '1.0.0', dependencies }),
);

const readValues = (region: string) =>
  parse(readFileSync(path.join(chart, 'ci', `${region}-values.yaml`), 'utf8')) as object;
const renderPlatform = (enabled: boolean, names: { release?: string; namespace?: string } = {}): Manifest[] =>
  render({
    from: folder,
    region: null,
    ...names,
    values: {
      global: { team: 'platform' },
      'org-api': { ...readValues('us'), enabled },
      canada: { ...readValues('ca'), enabled },
      canadaEast_2: { ...readValues('ca'), enabled },
      _canada: { ...readValues('ca'), enabled },
      'org-api-operator': { ...operatorValues, enabled: true },
    },
  });
const formatObjectName = ({ kind, metadata }: Manifest): string => `${kind} ${metadata.name}`;

describe('a chart with four regions and the operator as its parts', () => {
  it.each([
    'us',
    'org-api-operator-canada', // named after three of the parts
  ])('renders every object once as release %s, with pods that only their own selectors match', (release) => {
    const manifests = renderPlatform(true, { release });
    expect(new Set(manifests.map(formatObjectName)).size).toBe(manifests.length);
    expect(listPods(manifests).length).toBe(21);
    for (const { metadata } of manifests)
      expect(metadata.labels['helm.sh/chart'] ?? 'a').toMatch(/^[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?$/);
    const labels = listPods(manifests).map(({ labels }) => JSON.stringify(labels));
    for (const { kind, spec } of manifests.filter((one) => one.kind === 'Deployment')) {
      const entries = Object.entries(spec.selector.matchLabels).map(([key, value]) => `"${key}":"${value}"`);
      expect(
        labels.filter((one) => entries.every((entry) => one.includes(entry))),
        kind,
      ).toHaveLength(1);
    }
  });

  it('leaves out a part whose condition is false', () => {
    expect(listPods(renderPlatform(false))).toHaveLength(1);
  });

  it.each([
    ['1234', '5678'],
    ['1e10', '0x1f'],
    ['true', 'null'],
    ['a.b', 'on'],
    ['x'.repeat(53), 'x'.repeat(63)],
  ])('renders objects that Kubernetes decodes as release %s in namespace %s', async (release, namespace) => {
    const manifests = renderPlatform(true, { release, namespace });
    for (const version of kubernetesVersions) expect(await listUndecoded(manifests, version), version).toEqual([]);
    for (const { kind, metadata } of manifests) {
      expect([kind, metadata.namespace]).toEqual([kind, namespace]);
      expect(metadata.name).toMatch(/^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/); // what a Service may be called
    }
  });

  it('gives releases that share their first 52 characters different names', () => {
    const [one, other] = ['a', 'b'].map((end) =>
      renderPlatform(true, { release: `${'x'.repeat(52)}${end}` }).map(formatObjectName),
    );
    expect(one?.filter((name) => other?.includes(name))).toEqual([]);
  });
});

describe('parts whose names could be joined to one', () => {
  const platform = mkdtempSync(path.join(folder, 'joined-'));
  const writeChart = (at: string, name: string, dependencies: readonly { name: string; alias?: string }[]) => {
    mkdirSync(path.join(at, 'charts'), { recursive: true });
    const parts = dependencies.map((one) => ({ ...one, version: '*' }));
    writeFileSync(
      path.join(at, 'Chart.yaml'),
      JSON.stringify({ apiVersion: 'v2', name, version: '1.0.0', dependencies: parts }),
    );
    for (const part of names.filter((one) => dependencies.some((each) => each.name === one)))
      cpSync(path.join(chart, '..', part), path.join(at, 'charts', part), { recursive: true });
  };
  const components = ['api', 'console', 'worker', 'migrations', 'probe'];
  const operators = components.map((component) => `canada-${component}`);
  writeChart(platform, 'platform', [
    { name: 'eu' },
    ...['eu-west', 'canada'].map((alias) => ({ name: 'org-api', alias })),
    ...operators.map((alias) => ({ name: 'org-api-operator', alias })),
  ]);
  writeChart(path.join(platform, 'charts', 'eu'), 'eu', [{ name: 'org-api', alias: 'west' }]);
  const values = {
    eu: { west: readValues('us') },
    'eu-west': readValues('us'),
    canada: readValues('ca'),
    ...Object.fromEntries(operators.map((alias) => [alias, operatorValues])),
  };

  it('keep separate names: a path of parts, and an alias like the name of a component', () => {
    const keys = render({ from: platform, region: null, release: 'us', values }).map(formatObjectName);
    expect(keys.filter((key, index) => keys.indexOf(key) !== index)).toEqual([]);
    expect(keys.length).toBeGreaterThan(100);
  });
});
