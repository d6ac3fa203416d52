import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { documentsOf } from '../../charts/docs/documents.ts';
import { listLeaves, readValues } from '../../charts/docs/read-values.ts';
import { chart } from './render.ts';

const read = (name: string) => readFileSync(path.join(chart, name), 'utf8');
const values = readValues(read('values.yaml'));
const paths = listLeaves(values).map((value) => value.path);
const sections = new Set(listSections(values));
const templates = readdirSync(path.join(chart, 'templates'), { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.(yaml|tpl|txt)$/.test(name))
  .map((name) => read(path.join('templates', name)))
  .join('\n')
  .replace(/\{\{-? ?\/\*[\s\S]*?\*\//g, ''); // comments use no values
/** `{{ $policy := .Values.networkPolicy }}`: what follows `$policy.` is a value of that section. */
const aliases = [...templates.matchAll(/(\$\w+) := \.(?:root\.)?Values\.([\w.]+) -?\}\}/g)].map(
  ([, variable = '', section]): [RegExp, string[]] => [
    new RegExp(`\\${variable}\\.([A-Za-z]\\w*(?:\\.\\w+)*)`, 'g'),
    [`${section}.`],
  ],
);
/**
 * Sections that templates reach through a variable: `$app` is a component's, `own` a pod's,
 * `$peers` a server's.
 */
const servers = ['database', 'redis', 'temporal', 'otlp'];
const variables: [RegExp, string[]][] = [
  ...aliases,
  [/(?:\$values|\.Values)\.([A-Za-z]\w*(?:\.\w+)*)/g, ['']],
  [/(?:\$app|\.app)\.([a-z]\w*(?:\.\w+)*)/g, ['api.', 'worker.', 'console.']],
  [/(?:\.|\$)own\.([a-z]\w*(?:\.\w+)*)/g, ['api.', 'worker.', 'console.', 'migrations.']],
  [/\$peers\.(\w+)/g, servers.map((server) => `networkPolicy.${server}.`)],
];
const used = variables.flatMap(([pattern, sections]) =>
  [...templates.matchAll(pattern)].map(([, found]) => sections.map((section) => `${section}${found}`)),
);

describe('values.yaml', () => {
  it.each(Object.entries(documentsOf(read)))('matches %s: run npm run chart:docs', (name, text) => {
    expect(read(name)).toBe(text);
  });

  it('documents every value that a template uses', () => {
    const isKnown = (one: string) =>
      paths.some((known) => known === one || known.startsWith(`${one}.`) || one.startsWith(`${known}.`));
    expect(used.length).toBeGreaterThan(80);
    expect(used.filter((candidates) => !candidates.some(isKnown))).toEqual([]);
  });

  it('has no value that no template uses', () => {
    const named = new Set(used.flat());
    // Reached by computed names: the servers of networkPolicy, the public URLs, Temporal's settings
    // and each secret's reference.
    const computed = [
      /^networkPolicy\.(database|redis|temporal|otlp)\./,
      /^secrets\.\w+\.(existingSecret|key)$/,
      /^global$/,
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
  it('refuses a value without a comment, and an empty list without a comment on its items', () => {
    expect(() => readValues('# Fine.\na: 1\nb: 2\n# A list.\nc: []\n')).toThrow(
      'b has no comment.\nc is a list and needs items.',
    );
  });

  it('refuses unknown keys at every depth, except in free maps', () => {
    const { 'values.schema.json': text = '' } = documentsOf(read);
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

function listSections(list: typeof values): string[] {
  return list.flatMap((value) => (value.children === null ? [] : [value.path, ...listSections(value.children)]));
}
