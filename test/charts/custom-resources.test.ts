import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { eventTypes } from '#domain/contract/events.ts';
import { type Definition, generateTypes, readDefinition, referencePage } from '../../charts/docs/custom-resources.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (name: string) => readFileSync(path.join(root, name), 'utf8');
const folder = 'charts/org-api-crds/templates';
const files = readdirSync(path.join(root, folder)).sort();
const definitions = files.map((name) => readDefinition(read(`${folder}/${name}`)));

describe('the custom resources', () => {
  it.each([
    ['apps/operator/kube/resources.ts', generateTypes],
    ['docs/custom-resources.md', referencePage],
  ])('are what %s says: run npm run tool -- charts', (name, write: (all: Definition[]) => string) => {
    expect(read(name)).toBe(write(definitions));
  });

  it('share one group', () => {
    expect(new Set(definitions.map(({ group }) => group)).size).toBe(1);
  });

  it.each(files)('stay when their chart is uninstalled: %s', (name) => {
    const { metadata } = parse(read(`${folder}/${name}`)) as { metadata: { annotations: Record<string, string> } };

    expect(metadata.annotations['helm.sh/resource-policy']).toBe('keep');
  });

  it('offer the event types of the product, each once', () => {
    const subscription = definitions.find(({ kind }) => kind === 'WebhookSubscription');
    const list = subscription?.schema.properties?.spec?.properties?.eventTypes;

    expect(list?.items?.enum).toEqual(eventTypes);
    expect(list?.maxItems).toBe(eventTypes.length);
  });

  it('has the version of the product', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    const chart = parse(read('charts/org-api-crds/Chart.yaml')) as { version: string; appVersion: string };

    expect([chart.version, chart.appVersion]).toEqual([version, version]);
  });
});
