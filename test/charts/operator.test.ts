import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { documentsOf } from '../../charts/docs/documents.ts';
import { pick, render } from './render.ts';

const root = path.join(import.meta.dirname, '../..');
const chart = path.join(root, 'charts/org-api-operator');
const read = (name: string) => readFileSync(path.join(chart, name), 'utf8');
const rendered = (values = {}) => render({ from: chart, region: null, release: 'operator', namespace: 'test', values });

describe('the chart of the operator', () => {
  it.each(Object.entries(documentsOf(read)))('is what %s says: run npm run chart:docs', (name, text) => {
    expect(read(name)).toBe(text);
  });

  it('has the version of the product', () => {
    const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { version: string };
    const { version: own, appVersion } = parse(read('Chart.yaml')) as { version: string; appVersion: string };

    expect([own, appVersion]).toEqual([version, version]);
  });

  it('runs two replicas without privileges, on a file system that cannot be written', () => {
    const { spec } = pick(rendered(), 'Deployment');
    const [container] = spec.template.spec.containers;

    expect(spec.replicas).toBe(2);
    expect(spec.template.spec.securityContext.runAsNonRoot).toBe(true);
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  it('allows the operator to read only the Secrets that the values name, unless it carries out webhooks', () => {
    const verbsOf = (values: object) =>
      pick(rendered(values), 'Role').rules.filter(({ resources }: { resources: string[] }) =>
        resources.includes('secrets'),
      );

    expect(verbsOf({ webhooks: { enabled: true } })).toHaveLength(2);
    expect(verbsOf({})).toEqual([
      { apiGroups: [''], resources: ['secrets'], resourceNames: ['org-api'], verbs: ['get'] },
    ]);
  });
});
