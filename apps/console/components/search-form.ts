import { z } from 'zod';
import { type Child, type Html, html, nothing } from '../web/html.ts';

/** What is searched for, in a route's query. PostgreSQL has no text with NUL. */
export const searchText = z
  .string()
  .max(200)
  .refine((text) => !text.includes('\0'))
  .catch('');

/**
 * A list's search: a GET form, so that what is asked for stands in the address. `clear` leads back
 * to the whole list; null: nothing is asked for.
 */
export function searchForm(parts: { action: string; label: string; fields: Child; clear: string | null }): Html {
  const { action, label, fields, clear } = parts;
  // Not role="search" on the form: Pico gives that rounded fields that touch.
  return html`<search aria-label="${label}"><form method="get" action="${action}" class="search">
    ${fields}
    <p class="actions"><button type="submit" class="secondary">Search</button>${clear === null ? nothing : html`<a href="${clear}">Show all</a>`}</p>
  </form></search>`;
}
