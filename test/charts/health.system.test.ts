/**
 * How Argo CD and Flux judge the operator's statuses: the guide's script and expressions, run by
 * Argo CD's interpreter and by an interpreter of CEL.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { evaluate } from '@marcbachmann/cel-js';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { listBlocks, readPage } from '#test/documents.ts';
import type { Manifest } from '#test/render-charts.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { completeStatus, condition } from '../../apps/operator/controller/conditions.ts';
import type { CustomResource, ReportedCondition } from '../../apps/operator/kube/custom-resource.ts';
import { kinds, type Region } from '../../apps/operator/kube/resources.ts';
import { reportRegion } from '../../apps/operator/region/report.ts';
import { getTool } from '../../charts/tools.ts';
import { quietRegion, regionIn } from '../operator/region.ts';

const glua = await getTool('glua');
const page = readPage(path.join(import.meta.dirname, '../../docs/operations/deploy-with-argo-cd-or-flux.md'));
const objects = listBlocks(page, 'yaml').flatMap((block) =>
  parseAllDocuments(block).map((document) => document.toJS() as Manifest),
);
const getScript = (kind: string): string =>
  objects.find((one) => one.metadata?.name === 'argocd-cm').data[`resource.customizations.health.orgapi.dev_${kind}`];

const metadata = { uid: '1', generation: 2, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };

/** An object with a complete status. */
function withStatus(kind: string, conditions: ReportedCondition[], generation = 2): CustomResource {
  const resource = {
    apiVersion: 'orgapi.dev/v1alpha1',
    kind,
    metadata: { name: 'x', namespace: 'x', ...metadata, generation },
    spec: {},
  };
  return { ...resource, status: completeStatus(resource, { conditions }, new Date(0)) };
}

/** Returns the health in Argo CD: the script gets the object as \`obj\` and returns a table. */
function computeHealth(object: CustomResource): { status: string; message: string } {
  const folder = temporaryFolder();
  const script = `obj = ${toLua(object)}\nlocal hs = (function()\n${getScript(object.kind)}\nend)()
    print(hs.status)\nprint(hs.message)`;
  const file = path.join(folder, 'health.lua');
  writeFileSync(file, script);
  const { stdout, stderr } = spawnSync(glua, [file], { encoding: 'utf8' });
  const [status = '', message = ''] = stdout.split('\n');
  expect(stderr).toBe('');
  return { status, message };
}

function toLua(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(toLua).join(', ')}}`;
  if (typeof value !== 'object' || value === null) return value === null ? 'nil' : JSON.stringify(value);
  return `{${Object.entries(value).map(([key, one]) => `[${JSON.stringify(key)}] = ${toLua(one)}`)}}`;
}

const { database } = quietRegion;
const held = (state: string, isDrained: boolean) => ({
  database: { ...database, deliverySwitch: { ...database.deliverySwitch, state, isDrained } },
});
const region = {
  ...regionIn('us', {}),
  metadata: { name: 'region', namespace: 'us', ...metadata },
} as Region;
type Change = Partial<{ database: object; temporal: object | null }>;
const observe = (change: Change = {}) =>
  reportRegion(region, { ...quietRegion, ...change } as Parameters<typeof reportRegion>[1], []).conditions;

const regions: [what: string, conditions: ReportedCondition[], health: string, release: string][] = [
  ['Ready', observe(), 'Healthy', 'current'],
  ['not migrated', observe({ database: { reason: 'NotMigrated', message: '' } }), 'Progressing', 'waiting'],
  ['without a namespace', observe({ temporal: null }), 'Progressing', 'waiting'],
  ['lacks migrations', observe({ database: { ...database, migrations: ['0001'] } }), 'Progressing', 'waiting'],
  [
    'with a migration that failed',
    observe({ database: { ...database, failedMigration: { names: ['9999'], code: '22012' } } }),
    'Degraded',
    'waiting',
  ],
  [
    'with a ledger that differs',
    observe({ database: { ...database, ledger: { ...database.ledger, missing: 1, difference: 1 } } }),
    'Degraded',
    'current',
  ],
  [
    'without PostgreSQL',
    observe({ database: { reason: 'DatabaseUnreachable', message: 'PostgreSQL did not answer.' } }),
    'Progressing',
    'waiting',
  ],
];

describe('Argo CD', () => {
  it.each([
    ['paused', held('paused', false)],
    ['draining', held('draining', false)],
    ['drained', held('draining', true)],
  ])('shows a Region whose deliveries are %s as suspended', (_, change) => {
    expect(computeHealth(withStatus('Region', observe(change))).status).toBe('Suspended');
  });

  it.each(regions)('shows a Region that is %s as it is', (_, conditions, health) => {
    const object = withStatus('Region', conditions);

    expect(computeHealth(object)).toEqual({ status: health, message: conditions[0]?.message });
  });

  const ready = condition('Ready', true, 'Applied', 'The webhook is as declared.');
  it.each<[string, ReportedCondition[], string]>([
    ['active', [ready, condition('Delivering', true, 'Active', '')], 'Healthy'],
    ['paused', [ready, condition('Delivering', false, 'Paused', '')], 'Suspended'],
    ['suspended', [ready, condition('Delivering', false, 'Suspended', '')], 'Degraded'],
    ['failing', [ready, condition('Delivering', false, 'Failing', '')], 'Healthy'],
    [
      'pending',
      [condition('Ready', false, 'Pending', ''), condition('Delivering', null, 'Pending', '')],
      'Progressing',
    ],
    ['rejected', [condition('Ready', false, 'OrganizationNotAllowed', '')], 'Degraded'],
  ])('shows a WebhookSubscription that is %s as it is', (_, conditions, health) => {
    expect(computeHealth(withStatus('WebhookSubscription', conditions)).status).toBe(health);
  });

  it.each(Object.keys(kinds))('waits until the operator has seen the newest %s', (kind) => {
    const done = [condition('Ready', true, 'Applied', '')];
    const object = withStatus(kind, done);
    const changed = { ...object, metadata: { ...object.metadata, generation: 3 } };
    const { status: _, ...created } = object;

    expect(computeHealth(object).status).toBe('Healthy');
    expect(computeHealth(changed).status).toBe('Progressing');
    expect(computeHealth(created).status).toBe('Progressing');
  });
});

describe('Flux', () => {
  const [{ current }] = objects.find(({ kind }) => kind === 'HelmRelease').spec.healthCheckExprs;
  /** CEL has a separate type for integers, which is BigInt here. */
  const describeRelease = ({ status, metadata: { generation } }: CustomResource, observedGeneration: number) => {
    const fields = {
      status: { ...status, observedGeneration: BigInt(observedGeneration) },
      metadata: { generation: BigInt(generation) },
    };
    const judge = (expression: string) => evaluate(expression, fields) as boolean;
    return judge(current) ? 'current' : 'waiting';
  };

  it.each(regions)('judges a release whose Region is %s', (_, conditions, __, release) => {
    expect(describeRelease(withStatus('Region', conditions), 2)).toBe(release);
  });

  it('waits until the operator has seen the newest Region', () => {
    expect(describeRelease(withStatus('Region', observe()), 1)).toBe('waiting');
    expect(describeRelease({ ...withStatus('Region', []), status: {} }, 2)).toBe('waiting');
  });
});
