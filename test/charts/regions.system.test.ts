import { describe, expect, it } from 'vitest';
import { listPods, type Manifest, ofKind, pick, regions, render } from '#test/render-charts.ts';

/**
 * Where the regions' objects may differ, as the path within an object: each is a name of the
 * region, or follows from one.
 */
const allowed = [
  /^metadata\.(name|namespace)$/,
  /\.(app\.kubernetes\.io\/(instance|name)|cnpg\.io\/cluster|org-api\/region)$/,
  /\.annotations\.checksum\/settings$/,
  /\.serviceAccountName$/,
  /\.secret\.name$/,
  /\.env\.(REGION|TEMPORAL_NAMESPACE|CONSOLE_URL|API_URL|PROBE_WEBHOOK_ID|PROBE_WEBHOOK_ALLOW|MAIL_FROM)$/,
  /^spec\.(scaleTargetRef\.name|clusterIP|hostnames\.0|tls\.0\.(hosts\.0|secretName))$/,
  /^spec\.rules\.0\.(host|backendRefs\.0\.name|http\.paths\.0\.backend\.service\.name)$/,
];

describe('the regions', () => {
  it('render the same objects, except for names of the region', () => {
    const [us = [], ca = []] = regions.map((region) => render({ region }).map((one) => new Map(flatten(one))));
    expect(us.length).toBe(ca.length);
    const differing = us.flatMap((one, index) => {
      const other = ca[index] ?? new Map();
      return [...new Set([...one.keys(), ...other.keys()])].filter((path) => one.get(path) !== other.get(path));
    });
    expect(differing.length).toBeGreaterThan(50); // the walk finds objects
    expect([...new Set(differing)].filter((path) => !allowed.some((one) => one.test(path)))).toEqual([]);
  });

  it('name the other region only in its public URL', () => {
    for (const region of regions) {
      const other = region === 'us' ? 'ca' : 'us';
      const text = JSON.stringify(render({ region })).replaceAll(`https://api.${other}.example.com`, '');
      expect(text).not.toMatch(new RegExp(`org-api-${other}|[".]${other}[".]`));
    }
  });
});

it('the production examples send the audit log to a separate system', () => {
  for (const region of regions) {
    const settings = JSON.stringify(render({ region }));
    expect(settings).toContain('"name":"AUDIT_LOG_STREAM","value":"true"');
  }
});

describe('two releases in one namespace', () => {
  const [one = [], two = []] = ['us', 'blue'].map((release) => render({ release, namespace: 'shared' }));

  it('have no object in common', () => {
    const keys = (manifests: Manifest[]) => manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set([...keys(one), ...keys(two)]).size).toBe(one.length + two.length);
  });

  it('never select each other’s pods', () => {
    const selectors = JSON.stringify(one).match(/"(matchLabels|selector)":\{"[^}]*"\}/g) ?? [];
    const own = selectors.filter((text) => text.includes('app.kubernetes.io/component'));
    expect(own.length).toBeGreaterThan(20);
    for (const text of own) expect(text).toContain('"app.kubernetes.io/instance":"us"');
    for (const { labels } of listPods(two)) expect(labels['app.kubernetes.io/instance']).toBe('blue');
  });
});

describe('names and labels', () => {
  it('contain what an operator adds, and the chart’s own win', () => {
    const values = {
      commonLabels: { team: 'reads', 'app.kubernetes.io/instance': 'x' },
      fullnameOverride: 'api-of-us',
    };
    for (const { kind, metadata } of render({ values })) {
      expect(metadata.name, kind).toMatch(/^api-of-us-/);
      expect(metadata.labels).toMatchObject({ team: 'reads', 'app.kubernetes.io/instance': 'us' });
    }
  });

  it('follow nameOverride, and stay within their limits', () => {
    const manifests = render({ release: 'r'.repeat(53), values: { nameOverride: 'n'.repeat(40) } });
    for (const { metadata } of manifests) expect(metadata.name.length).toBeLessThanOrEqual(63);
    expect(ofKind(manifests, 'Deployment')[0].spec.selector.matchLabels['app.kubernetes.io/name']).toBe('n'.repeat(40));
  });

  it('of extra objects are those that the values give', () => {
    const extra = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } };
    expect(pick(render({ values: { extraObjects: [extra] } }), 'ConfigMap')).toEqual(extra);
  });
});

/** Returns every leaf of an object with its path; environment variables by their names. */
function flatten(value: unknown, below = ''): [string, unknown][] {
  if (typeof value !== 'object' || value === null) return [[below, value]];
  const entries = Array.isArray(value)
    ? value.map((one, index): [string, unknown] => getEntry(one, index, below))
    : Object.entries(value);
  return entries.flatMap(([key, one]) => flatten(one, below === '' ? key : `${below}.${key}`));
}

function getEntry(one: Manifest, index: number, below: string): [string, unknown] {
  return below.endsWith('.env') ? [one.name, one.value] : [String(index), one];
}
