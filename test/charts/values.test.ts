import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { generateDocuments } from '../../charts/docs/documents.ts';
import { listLeaves, readValues } from '../../charts/docs/read-values.ts';

const chart = path.join(import.meta.dirname, '../../charts/org-api');

/**
 * Sections that templates of each chart reach through a variable: `$app` is a component's, `own` a
 * pod's.
 */
const charts = {
  'org-api': {
    app: ['api.', 'worker.', 'console.'],
    own: ['api.', 'worker.', 'console.', 'migrations.'],
  },
  'org-api-operator': { app: [], own: [''] },
};
const createReader = (name: string) => (file: string) => readFileSync(path.join(chart, '..', name, file), 'utf8');
const read = createReader('org-api');

describe.each(Object.entries(charts))('values.yaml of %s', (name, { app, own }) => {
  const read = createReader(name);
  const values = readValues(read('values.yaml'));
  const paths = listLeaves(values).map((value) => value.path);
  const sections = new Set(listSections(values));
  const templates = readdirSync(path.join(chart, '..', name, 'templates'), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(yaml|tpl|txt)$/.test(file))
    .map((file) => read(path.join('templates', file)))
    .join('\n')
    .replace(/\{\{-? ?\/\*[\s\S]*?\*\//g, ''); // comments use no values
  /** `{{ $policy := .Values.networkPolicy }}`: what follows `$policy.` is a value of that section. */
  const aliases = [...templates.matchAll(/(\$\w+) := \.(?:root\.)?Values\.([\w.]+) -?\}\}/g)].map(
    ([, variable = '', section]): [RegExp, string[]] => [
      new RegExp(`\\${variable}\\.([A-Za-z]\\w*(?:\\.\\w+)*)`, 'g'),
      [`${section}.`],
    ],
  );
  const variables: [RegExp, string[]][] = [
    ...aliases,
    [/(?:\$values|\.Values)\.([A-Za-z]\w*(?:\.\w+)*)/g, ['']],
    [/(?:\$app|\.app)\.([a-z]\w*(?:\.\w+)*)/g, app],
    [/(?:\.|\$)own\.([a-z]\w*(?:\.\w+)*)/g, own],
    [/\.monitor\.(\w+)/g, ['monitoring.serviceMonitor.']],
    [/\.rules\.(\w+)/g, ['monitoring.rules.']],
    [/\.(dns\.\w+)/g, ['networkPolicy.']],
  ];
  const used = variables.flatMap(([pattern, sections]) =>
    [...templates.matchAll(pattern)].map(([, found]) => sections.map((section) => `${section}${found}`)),
  );

  it.each(Object.entries(generateDocuments(read)))('matches %s: run npm run tool -- charts', (file, text) => {
    expect(read(file)).toBe(text);
  });

  it('documents every value that a template uses', () => {
    const isKnown = (one: string) =>
      paths.some((known) => known === one || known.startsWith(`${one}.`) || one.startsWith(`${known}.`));
    expect(used.length).toBeGreaterThan(50);
    const unknown = used.filter((candidates) => candidates.length > 0 && !candidates.some(isKnown));
    expect(unknown).toEqual([]);
  });

  it('has no value that no template uses', () => {
    const named = new Set(used.flat());
    // Reached by computed names: the servers of networkPolicy, the public URLs, Temporal's settings
    // and each secret's reference. A chart that this one is part of uses the last two.
    const computed = [
      /^networkPolicy\.(database|redis|temporal|otlp|mail|apiServer)\./,
      /^secrets\.\w+\.(existingSecret|key)$/,
      /^(global|enabled)$/,
    ];
    // The name of a section such as `api.autoscaling` uses none of its values.
    const isUsed = (known: string) => {
      const parts = known.split('.');
      return parts.some((_, index) => {
        const above = parts.slice(0, index + 1).join('.');
        return named.has(above) && !sections.has(above);
      });
    };
    expect(paths.filter((known) => !isUsed(known) && !computed.some((one) => one.test(known)))).toEqual([]);
  });
});

describe('the generator', () => {
  it('rejects a value without a comment, and an empty list without a comment on its items', () => {
    expect(() => readValues('# Fine.\na: 1\nb: 2\n# A list.\nc: []\n')).toThrow(
      'b has no comment.\nc is a list and needs items.',
    );
  });

  it('rejects unknown keys at every depth, except in free maps', () => {
    const { 'values.schema.json': text = '' } = generateDocuments(read);
    const schema = JSON.parse(text);
    expect(schema.additionalProperties).toBe(false);
    expect(schema.properties.api.properties.service.additionalProperties).toBe(false);
    expect(schema.properties.api.properties.nodeSelector.additionalProperties).toEqual({ type: 'string' });
    expect(schema.properties.region).toMatchObject({ type: 'string', enum: ['us', 'ca'] });
  });
});

it('the chart has the version of package.json', () => {
  const { version } = JSON.parse(readFileSync(path.join(chart, '../../package.json'), 'utf8'));
  expect(parse(read('Chart.yaml'))).toMatchObject({ version, appVersion: version });
});

function listSections(list: ReturnType<typeof readValues>): string[] {
  return list.flatMap((value) => (value.children === null ? [] : [value.path, ...listSections(value.children)]));
}
