/** A JSON Schema of the document, as far as it uses the keywords. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  const?: unknown;
  enum?: string[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  description?: string;
}

/** A field of a body, a parameter, a header or a status, as the page and the Markdown show it. */
export interface Field {
  name: string;
  /** In words: `UUID`, `list of objects`, `string, optional`. Empty for a status. */
  type: string;
  /** Markdown: the meaning, and the values if they are listed. May be empty. */
  text: string;
  /** The fields of its value, or of the elements of its list. */
  fields: readonly Field[];
}

/** Returns the schema that a reference names, or the schema itself. */
export type Resolve = <T>(value: T) => T;

const formats: Record<string, string> = { uuid: 'UUID', 'date-time': 'date-time' };

/** Returns a type in words: `UUID`, `integer or null`, `list of objects`. */
function describeType(schema: Schema, resolve: Resolve): string {
  const { type, const: constant, format, anyOf, items, properties } = resolve(schema);
  if (constant !== undefined) return JSON.stringify(constant);
  if (anyOf) return anyOf.map((each) => describeType(each, resolve)).join(' or ');
  if (items) return `list of ${describeType(items, resolve)}s`;
  if (properties) return 'object';
  return [type ?? 'any']
    .flat()
    .map((each) => (each === 'string' && formats[format ?? '']) || each)
    .join(' or ');
}

/** Describes a value that is a list: its type, its order, and that its fields are those of its elements. */
export function describeBody(schema: Schema, resolve: Resolve): string {
  const { items, description } = resolve(schema);
  return items === undefined ? '' : `A ${describeType(schema, resolve)}. ${description ?? ''} Each has:`;
}

/** Returns the schema whose properties a value of `schema` has: those of an element, of what may be null. */
function findObject(schema: Schema, resolve: Resolve): Schema {
  const found = resolve(schema);
  const inner = found.items ?? found.anyOf?.[0];
  return found.properties || inner === undefined ? found : findObject(inner, resolve);
}

/** Returns the fields of an object, or of the elements of a list, each with its own. */
export function listFields(schema: Schema, resolve: Resolve): Field[] {
  const { properties = {}, required = [] } = findObject(schema, resolve);
  return Object.entries(properties).map(([name, property]) =>
    describeField(name, property, { resolve, isRequired: required.includes(name) }),
  );
}

/** Describes one field. Values that its meaning does not name follow it. */
export function describeField(
  name: string,
  schema: Schema,
  { resolve, isRequired, description }: { resolve: Resolve; isRequired: boolean; description?: string },
): Field {
  const found = resolve(schema);
  const meaning = description ?? schema.description ?? found.description ?? '';
  const values = (found.enum ?? []).map((value) => `\`${value}\``);
  const isListed = values.every((value) => meaning.includes(value));
  return {
    name,
    type: `${describeType(schema, resolve)}${isRequired ? '' : ', optional'}`,
    text: isListed ? meaning : `${meaning} One of ${values.join(', ')}.`.trim(),
    fields: listFields(schema, resolve),
  };
}
