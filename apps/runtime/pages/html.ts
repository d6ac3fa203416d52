import { type SafeHtml, html as template } from '@remix-run/html-template';

/** Markup that is safe to send: only `html` and `trusted` create it. */
export type Html = SafeHtml;

/**
 * What a template can contain: markup unchanged, text and numbers escaped, nothing for null and
 * undefined.
 */
export type Child = Html | string | number | null | undefined | readonly Child[];

/**
 * Returns markup from a template. Every value in it is escaped for text and for attributes in
 * quotes, so attributes always have quotes. The type is narrower than the library's, which prints
 * booleans.
 */
export const html = template as (strings: TemplateStringsArray, ...children: Child[]) => Html;

/**
 * Marks markup as safe that the service created by other means. Never use it for anything that a
 * person typed.
 */
export const trusted = (markup: string): Html => template.raw`${markup}`;

/** No markup. */
export const nothing: Html = html``;

/**
 * Returns attributes, each with a space before it: `true` stands alone, null and false are left
 * out, all else is escaped.
 */
export function attributes(values: Record<string, string | number | boolean | null | undefined>): Html {
  const parts = Object.entries(values).map(([name, value]): Html => {
    if (value === null || value === undefined || value === false) return nothing;
    return value === true ? trusted(` ${name}`) : html` ${trusted(name)}="${value}"`;
  });
  return html`${parts}`;
}
