import { type ChartValue, listLeaves, readValues } from './read-values.ts';
import { wrap } from './wrap.ts';

/**
 * Returns the documents that are generated from values.yaml: the file's name in the chart's folder
 * and its text. `read` returns a file of that folder.
 *
 * @throws ValuesRefused
 */
export function documentsOf(read: (name: string) => string): Record<string, string> {
  const values = readValues(read('values.yaml'));
  return {
    'values.schema.json': `${JSON.stringify(schemaOf(values), null, 2)}\n`,
    'README.md': replaceList(read('README.md'), listOf(values)),
  };
}

const octet = String.raw`(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`;
const ipv4 = String.raw`${octet}(\.${octet}){3}`;
const ipv6 = `[0-9A-Fa-f]{0,4}(:[0-9A-Fa-f]{0,4}){2,7}(:${ipv4})?`;
const [bits4, bits6] = [String.raw`(/(3[0-2]|[12]?\d))`, String.raw`(/(12[0-8]|1[01]\d|[1-9]?\d))`];

/** Definitions for `$ref: "#/$defs/…"` in `@schema` lines. A block is in CIDR notation. */
const definitions = {
  addressOrEmpty: { pattern: `^(${ipv4}|${ipv6})?$` },
  addressOrBlock: { type: 'string', pattern: `^(${ipv4}${bits4}?|${ipv6}${bits6}?)$` },
  block: { type: 'string', pattern: `^(${ipv4}${bits4}|${ipv6}${bits6})$` },
};

/**
 * Returns the JSON schema of the values. It is strict: a key that the chart does not know is
 * refused.
 */
function schemaOf(values: readonly ChartValue[]): object {
  const schema = sectionSchema(values);
  const text = JSON.stringify(schema);
  const used = Object.entries(definitions).filter(([name]) => text.includes(`#/$defs/${name}"`));
  const $defs = used.length === 0 ? undefined : Object.fromEntries(used);
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'Values of org-api', ...schema, $defs };
}

function sectionSchema(values: readonly ChartValue[]): object {
  const properties = values.map((value) => [value.path.split('.').at(-1) ?? '', schemaOfValue(value)]);
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(properties) };
}

function schemaOfValue(value: ChartValue): object {
  const description = value.description || undefined;
  if (value.children !== null) return { description, ...sectionSchema(value.children) };
  return { description, type: typeOf(value.default), ...value.added, default: value.default };
}

function typeOf(preset: unknown): string {
  if (Array.isArray(preset)) return 'array';
  if (typeof preset === 'number') return Number.isInteger(preset) ? 'integer' : 'number';
  return typeof preset; // string, boolean or object
}

/** Returns the README's list of values, with a heading for each section. */
function listOf(values: readonly ChartValue[]): string {
  const general = values.filter((value) => value.children === null);
  const sections = values.filter((value) => value.children !== null);
  const parts = sections.map(({ path, description, children }) => section(`\`${path}\``, description, children ?? []));
  return [section('General', '', general), ...parts].join('\n');
}

function section(title: string, introduction: string, values: readonly ChartValue[]): string {
  const items = listLeaves(values).map(({ path, default: preset, description }) =>
    wrap(`\`${path}\` (\`${toJson(preset)}\`): ${description}`, 118).join('\n  '),
  );
  const head = [`### ${title}`, '', ...(introduction === '' ? [] : [...wrap(introduction, 120), ''])];
  return [...head, ...items.map((item) => `- ${item}`), ''].join('\n');
}

/** JSON on one line, with spaces at which it can be wrapped. */
function toJson(value: unknown): string {
  return JSON.stringify(value, null, 1).replaceAll(/\n\s*/g, ' ');
}

const marks = ['<!-- values: written by npm run chart:docs -->', '<!-- end of values -->'] as const;

/**
 * Replaces the text between the two marks of a README.
 *
 * @throws Error when a mark is missing.
 */
function replaceList(readme: string, list: string): string {
  const [begin, end] = [readme.indexOf(marks[0]), readme.indexOf(marks[1])];
  if (begin < 0 || end < begin) throw new Error(`The chart's README lacks the lines ${marks.join(' and ')}.`);
  return `${readme.slice(0, begin + marks[0].length)}\n\n${list}\n${readme.slice(end)}`;
}
