import { isMap, isScalar, type Pair, parse, parseDocument, type YAMLMap } from 'yaml';

/** One value of the chart, from values.yaml. */
export interface ChartValue {
  /** The path for `--set`, for example `api.service.port`. */
  path: string;
  /** The sentences of its comment, on one line. */
  description: string;
  /** What its `@schema` lines add to the JSON schema. */
  added: Record<string, unknown>;
  /** The default; null for a section. */
  default: unknown;
  /** The values of a section, in order; null for a single value. */
  children: ChartValue[] | null;
}

/** What is wrong with values.yaml, one sentence each. */
export class InvalidValuesError extends Error {}

/**
 * Reads values.yaml with its comments. A comment stands directly above its key: sentences, then
 * `@schema` lines, each a YAML flow map of JSON schema keywords. A map with `additionalProperties`
 * among them is one free value, any other map a section.
 *
 * @throws InvalidValuesError when a value has no comment, or an empty list, map or null does not
 * say what it takes.
 */
export function readValues(text: string): ChartValue[] {
  const document = parseDocument(text);
  if (document.errors.length > 0 || !isMap(document.contents))
    throw new InvalidValuesError('values.yaml is no YAML map.');
  const values = readMap(document.contents, '');
  const problems = values.flatMap(listProblems);
  if (problems.length > 0) throw new InvalidValuesError(problems.join('\n'));
  return values;
}

function readMap(map: YAMLMap, below: string): ChartValue[] {
  return map.items.map((pair, index) => readPair(pair, below, index === 0 ? (map.commentBefore ?? '') : ''));
}

function readPair(pair: Pair, below: string, commentOfMap: string): ChartValue {
  if (!isScalar(pair.key)) throw new InvalidValuesError(`A key below ${below || 'the top'} is no word.`);
  const path = below === '' ? String(pair.key.value) : `${below}.${pair.key.value}`;
  // the file's head is another comment
  const [comment = ''] = (pair.key.commentBefore ?? commentOfMap).split(/\n\s*\n/).slice(-1);
  const lines = comment.split('\n').map((line) => line.trim());
  const isSchema = (line: string) => line.startsWith('@schema ');
  const added = Object.assign({}, ...lines.filter(isSchema).map((line) => parse(line.slice('@schema '.length))));
  const description = lines.filter((line) => line !== '' && !isSchema(line)).join(' ');
  if (isMap(pair.value) && !('additionalProperties' in added))
    return { path, description, added, default: null, children: readMap(pair.value, path) };
  const value = pair.value as { toJSON(): unknown } | null;
  return { path, description, added, default: value === null ? null : value.toJSON(), children: null };
}

function listProblems(value: ChartValue): string[] {
  if (value.children !== null) return value.children.flatMap(listProblems);
  const problems = value.description === '' ? [`${value.path} has no comment.`] : [];
  const { default: preset, added } = value;
  if (preset === null && !('type' in added)) problems.push(`${value.path} is null and needs a type.`);
  if (Array.isArray(preset) && !('items' in added)) problems.push(`${value.path} is a list and needs items.`);
  return problems;
}

/** Returns all single values in order. */
export function listLeaves(values: readonly ChartValue[]): ChartValue[] {
  return values.flatMap((value) => (value.children === null ? [value] : listLeaves(value.children)));
}
