import { z } from 'zod';
import { type Child, type Html, html, nothing } from '../web/html.ts';

/** The search text in a route's query. PostgreSQL's text cannot contain NUL. */
export const searchText = z
  .string()
  .max(200)
  .refine((text) => !text.includes('\0'))
  .catch('');

/** Draws the search of a list, a GET form. `clear` is the path of the whole list; null hides it. */
export function searchForm(parts: { action: string; label: string; fields: Child; clear: string | null }): Html {
  const { action, label, fields, clear } = parts;
  return html`<search aria-label="${label}"><form method="get" action="${action}" class="search">
    ${fields}
    <p class="actions"><button type="submit" class="secondary">Search</button>
      ${clear === null ? nothing : html`<a href="${clear}">View all</a>`}</p>
  </form></search>`;
}
