import { attributes, type Html, html, nothing } from '#runtime/pages/html.ts';
import type { Parameter, Reference, Schema } from './document.ts';
import { inlineMarkdown } from './markdown.ts';

type Resolve = Reference['resolve'];

const formats: Record<string, string> = { uuid: 'UUID', 'date-time': 'date-time' };

/** Returns a type in words: `UUID`, `integer or null`, `list of objects`. */
export function describeType(schema: Schema, resolve: Resolve): string {
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

/** Returns the schema whose properties a value of `schema` has: those of an element, of what may be null. */
function findObject(schema: Schema, resolve: Resolve): Schema | null {
  const found = resolve(schema);
  if (found.properties) return found;
  const inner = found.items ?? found.anyOf?.[0];
  return inner === undefined ? null : findObject(inner, resolve);
}

/**
 * Renders the fields of an object, or of the elements of a list, each with its own in turn: those of
 * `schema` itself, and of its fields, are open.
 */
export function fields(schema: Schema, resolve: Resolve, depth = 0): Html {
  const found = findObject(schema, resolve);
  if (found === null) return nothing;
  const required = new Set(found.required);
  return html`<dl class="fields">${Object.entries(found.properties ?? {}).map(([name, property]) => {
    const { enum: values, description } = resolve(property);
    const text = property.description ?? description;
    const inner = fields(property, resolve, depth + 1);
    const isListed = values?.every((value) => text?.includes(`\`${value}\``));
    const details =
      inner === nothing
        ? nothing
        : html`<details${attributes({ open: depth === 0 })}><summary>Fields of <code>${name}</code></summary>${inner}
</details>`;
    return html`<div><dt><code>${name}</code> <span class="type">${describeType(property, resolve)}${
      required.has(name) ? '' : ', sometimes'
    }</span></dt><dd>${text ? html`<p>${inlineMarkdown(text)}</p>` : nothing}${
      values && !isListed ? enumValues(values) : nothing
    }${details}</dd></div>`;
  })}</dl>`;
}

const enumValues = (values: readonly string[]): Html =>
  html`<p class="values">${values.map((value) => html`<code>${value}</code> `)}</p>`;

/** Renders parameters or headers. */
export function parameters(all: readonly Parameter[]): Html {
  return html`<dl class="fields">${all.map(
    ({ name, description, required }) =>
      html`<div><dt><code>${name}</code>${
        required ? nothing : html` <span class="type">sometimes</span>`
      }</dt><dd><p>${inlineMarkdown(description)}</p></dd></div>`,
  )}</dl>`;
}
