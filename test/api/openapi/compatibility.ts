/**
 * Decides whether a version of the OpenAPI document only adds to an earlier one.
 *
 * The later version must repeat the earlier one, except texts for people. The permitted additions
 * are listed below by their location. Any other keyword that is added, removed or changed is
 * rejected.
 *
 * The comparison is stricter than general tools, which ask what breaks a typical client. They let
 * an enum of a response gain a value, and ignore webhooks. Here a new value is a change, because a
 * client that handles every value cannot handle the new one.
 */
import { isDeepStrictEqual } from 'node:util';

type Json = { [name: string]: unknown };
/** Compares one location of both versions; `undefined` is absent. */
type Rule = (before: unknown, after: unknown, path: string, breaks: string[]) => void;

/**
 * Returns what in `after` neither equals `before` nor is an addition, each as `path: what`; empty
 * when compatible.
 */
export function findBreaks(before: object, after: object): string[] {
  const breaks: string[] = [];
  documentRule(withoutReferences(before), withoutReferences(after), '', breaks);
  return breaks;
}

const free: Rule = () => {};

const same: Rule = (before, after, path, breaks) => {
  if (isDeepStrictEqual(before, after)) return;
  const what =
    after === undefined
      ? 'was removed'
      : before === undefined
        ? `was added as ${JSON.stringify(after)}`
        : `changed from ${JSON.stringify(before)} to ${JSON.stringify(after)}`;
  breaks.push(`${path}: ${what}`);
};

/** A promise: it may be added, and not removed. */
const promise: Rule = (before, after, path, breaks) => {
  if (before === true) same(before, after, path, breaks);
};

/** A list that may gain values. */
const gaining: Rule = (before, after, path, breaks) => {
  for (const value of list(before)) {
    if (!list(after).includes(value)) breaks.push(`${path}: lost ${JSON.stringify(value)}`);
  }
};

/** An object whose keys are names: it may gain some. */
function map(entry: Rule): Rule {
  return (before, after, path, breaks) => {
    const now = object(after);
    for (const [name, value] of Object.entries(object(before))) {
      if (name in now) entry(value, now[name], `${path}.${name}`, breaks);
      else breaks.push(`${path}.${name}: was removed`);
    }
  };
}

/** An object whose keys are keywords: each has its rule; those without one must not change. */
function keywords(rules: Record<string, Rule>): Rule {
  return (before, after, path, breaks) => {
    if (before === undefined || after === undefined) return same(before, after, path, breaks);
    const was = object(before);
    const now = object(after);
    for (const keyword of new Set([...Object.keys(was), ...Object.keys(now)])) {
      if (forPeople.has(keyword)) continue;
      const rule = rules[keyword] ?? same;
      rule(was[keyword], now[keyword], path === '' ? keyword : `${path}.${keyword}`, breaks);
    }
  };
}

/** A list of as many schemas, each comparable with the one in its place. */
function each(entry: Rule): Rule {
  return (before, after, path, breaks) => {
    if (list(before).length !== list(after).length) return same(before, after, path, breaks);
    for (const [index, value] of list(before).entries()) entry(value, list(after)[index], `${path}.${index}`, breaks);
  };
}

/**
 * Parameters, identified by location and name. `mayBeRequired`: whether a new one may be required;
 * one that the service sends may, one that a partner sends may not.
 */
function parameters(entry: Rule, mayBeRequired: boolean): Rule {
  const byName = (value: unknown): Json =>
    Object.fromEntries(
      list(value).map((parameter) => [`${object(parameter).in} ${object(parameter).name}`, parameter]),
    );
  return (before, after, path, breaks) => {
    map(entry)(byName(before), byName(after), path, breaks);
    for (const [name, parameter] of Object.entries(byName(after))) {
      const isNew = !(name in byName(before));
      if (isNew && object(parameter).required === true && !mayBeRequired)
        breaks.push(`${path}.${name}: is new and required`);
    }
  };
}

/** Keywords whose values only people read. */
const forPeople = new Set(['title', 'summary', 'description', 'example', 'examples', 'deprecated', 'externalDocs']);

/** A size of a number: it may be stated, and then not changed. */
const stated: Rule = (before, after, path, breaks) => {
  if (before !== undefined) same(before, after, path, breaks);
};

/** A schema of what the service sends: an integer may state its size, which it always had. */
const schemaRule: Rule = (before, after, path, breaks) =>
  keywords({
    properties: map(schemaRule),
    required: gaining,
    items: schemaRule,
    anyOf: each(schemaRule),
    ...(object(after).type === 'integer' && { format: stated, minimum: stated, maximum: stated }),
  })(before, after, path, breaks);

const contentRule = map(keywords({ schema: schemaRule }));
const sentHeaderRule = keywords({ schema: schemaRule, required: promise });
const responsesRule = map(keywords({ headers: map(sentHeaderRule), content: contentRule }));

const readRule = keywords({
  parameters: parameters(keywords({ schema: keywords({}) }), false),
  responses: responsesRule,
});
const eventRule = keywords({
  parameters: parameters(sentHeaderRule, true),
  requestBody: keywords({ content: contentRule }),
  responses: responsesRule,
});

const documentRule = keywords({
  openapi: free,
  info: free,
  tags: free,
  paths: map(map(readRule)),
  webhooks: map(map(eventRule)),
  // Compared where they are used; here only their names, which become types in generated clients.
  components: map(map(free)),
});

/**
 * Returns the document with every `$ref` replaced by its target, so that moving a part into a
 * component and back is no change.
 */
function withoutReferences(document: object): unknown {
  const expand = (value: unknown, open: string[]): unknown => {
    if (Array.isArray(value)) return value.map((entry) => expand(entry, open));
    if (typeof value !== 'object' || value === null) return value;
    const { $ref, ...rest } = value as Json;
    if (typeof $ref === 'string' && !open.includes($ref)) {
      return { ...object(expand(find(document, $ref), [...open, $ref])), ...object(expand(rest, open)) };
    }
    return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, expand(entry, open)]));
  };
  return expand(document, []);
}

function find(document: object, pointer: string): unknown {
  const names = pointer.replace('#/', '').split('/');
  return names.reduce<unknown>(
    (value, name) => object(value)[name.replaceAll('~1', '/').replaceAll('~0', '~')],
    document,
  );
}

function object(value: unknown): Json {
  return (value ?? {}) as Json;
}

function list(value: unknown): unknown[] {
  return (value ?? []) as unknown[];
}
