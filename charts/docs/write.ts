import { type ChartValue, listLeaves } from './read-values.ts';

/** JSON schema of the values, strict: a key that the chart does not know is refused. */
export function schemaOf(values: readonly ChartValue[]): object {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Values of org-api',
    ...sectionSchema(values),
  };
}

function sectionSchema(values: readonly ChartValue[]): object {
  const properties = values.map((value) => [value.path.split('.').at(-1) ?? '', schemaOfValue(value)]);
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(properties) };
}

function schemaOfValue(value: ChartValue): object {
  const description = value.description === '' ? {} : { description: value.description };
  if (value.children !== null) return { ...description, ...sectionSchema(value.children) };
  return { ...description, type: typeOf(value.default), ...value.added, default: value.default };
}

function typeOf(preset: unknown): string {
  if (Array.isArray(preset)) return 'array';
  if (typeof preset === 'number') return Number.isInteger(preset) ? 'integer' : 'number';
  return typeof preset; // string, boolean or object
}

/** The README's tables, one a section. */
export function tablesOf(values: readonly ChartValue[]): string {
  const general = values.filter((value) => value.children === null);
  const sections = values.filter((value) => value.children !== null);
  return [
    table('General', '', general),
    ...sections.map((section) => table(`\`${section.path}\``, section.description, section.children ?? [])),
  ].join('\n');
}

function table(title: string, introduction: string, values: readonly ChartValue[]): string {
  const rows = listLeaves(values).map(
    (value) =>
      `| \`${value.path}\` | \`${JSON.stringify(value.default)}\` | ${value.description.replaceAll('|', '\\|')} |`,
  );
  const head = ['| Value | Default | Meaning |', '| --- | --- | --- |'];
  return [`### ${title}`, '', ...(introduction === '' ? [] : [introduction, '']), ...head, ...rows, ''].join('\n');
}

const marks = ['<!-- values: written by npm run chart:docs -->', '<!-- end of values -->'] as const;

/** A README with what stands between its two marks replaced. @throws when a mark is missing. */
export function replaceTables(readme: string, tables: string): string {
  const [begin, end] = [readme.indexOf(marks[0]), readme.indexOf(marks[1])];
  if (begin < 0 || end < begin) throw new Error(`The chart's README lacks the lines ${marks.join(' and ')}.`);
  return `${readme.slice(0, begin + marks[0].length)}\n\n${tables}\n${readme.slice(end)}`;
}
