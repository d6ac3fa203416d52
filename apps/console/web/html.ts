import { raw as alreadyHtml, html as template } from 'hono/html';
import type { HtmlEscapedString } from 'hono/utils/html';

/** Markup that is safe to send: only `html` and `trusted` make it. */
export type Html = HtmlEscapedString;

/**
 * What may stand in a template: markup as it is, text and numbers escaped, nothing for null,
 * undefined and false.
 */
export type Child = Html | string | number | null | undefined | false | readonly Child[];

/**
 * Markup from a template; every value in it is escaped for text and for attributes in quotes (write
 * them always in quotes).
 *
 * hono's `html` accepts anything and may return a promise; this narrows both, so that an object or
 * a promise in a page is a type error.
 */
export function html(strings: TemplateStringsArray, ...children: Child[]): Html {
  return template(strings, ...children) as Html;
}

/**
 * Markup that somebody else made and we trust, such as a picture of ours. Never anything that a
 * person typed.
 */
export const trusted = (markup: string): Html => alreadyHtml(markup);

/** Nothing at all. */
export const nothing: Html = alreadyHtml('');

/**
 * Attributes, each with a space before it: `true` stands alone, null and false are left out, all
 * else is escaped.
 */
export function attributes(values: Record<string, string | number | boolean | null | undefined>): Html {
  const parts = Object.entries(values).map(([name, value]): Html => {
    if (value === null || value === undefined || value === false) return nothing;
    return value === true ? trusted(` ${name}`) : html`${trusted(` ${name}="`)}${value}${trusted('"')}`;
  });
  return html`${parts}`;
}
