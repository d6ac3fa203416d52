import { z } from 'zod';
import { findDescription } from './descriptions.ts';
import type { Layout } from './document-reader.ts';
import { documentFields, documentLayout, formats, type Kind } from './format.ts';

type Schema = Record<string, unknown>;
type AnyLayout = Layout<Kind | 'document'>;

/**
 * Returns the JSON Schema (2020-12) of the import format: the fields of each kind as they are checked,
 * nested as the reader nests them. It never rejects what an import accepts. Only an import or its dry run
 * finds what holds across fields and objects, such as references and seats within the plan.
 */
export function describeFormat(): Schema {
  const definitions = listLayouts(documentLayout).map((layout) => [layout.kind, describeObject(layout)] as const);
  const { document, ...$defs } = Object.fromEntries(definitions);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'urn:org-api:import-1',
    title: 'Import document of org-api',
    ...document,
    $defs,
  };
}

/** Returns the text of the committed file, which the API serves too. */
export function importSchemaText(): string {
  return `${JSON.stringify(describeFormat(), null, 2)}\n`;
}

function listLayouts(layout: AnyLayout): AnyLayout[] {
  const below = [...Object.values(layout.lists ?? {}), ...Object.values(layout.parts ?? {})];
  return [layout, ...below.flatMap(listLayouts)];
}

function describeObject(layout: AnyLayout): Schema {
  const fields = Object.entries(layout.kind === 'document' ? documentFields : formats[layout.kind].fields);
  const required = fields.filter(([, { type }]) => !type.safeParse(undefined).success).map(([name]) => name);
  const properties = Object.fromEntries(
    fields.map(([name, { type }]) => [name, { ...describeField(layout, name, type), ...describe(layout.kind, name) }]),
  );
  return { type: 'object', properties, required, additionalProperties: false };
}

function describeField(layout: AnyLayout, name: string, type: z.ZodType): Schema {
  const [list, part] = [layout.lists?.[name], layout.parts?.[name]];
  if (list !== undefined) return { type: 'array', items: { $ref: `#/$defs/${list.kind}` } };
  if (part !== undefined) return { $ref: `#/$defs/${part.kind}` };
  const { $schema, ...schema } = z.toJSONSchema(type, { target: 'draft-2020-12', io: 'input' });
  return schema;
}

function describe(kind: Kind | 'document', name: string): Schema {
  const description = findDescription(kind, name);
  return description === undefined ? {} : { description };
}
