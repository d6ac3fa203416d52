import { z } from 'zod';
import { type Child, type Html, html, nothing } from '#runtime/pages/html.ts';
import type { FormState } from '../web/form.ts';
import { textField } from './form.ts';

/** The search text in a route's query. */
export const searchText = z.string().max(200).catch('');

/** Renders the field of `searchText`, named `q`. */
export const searchField = (state: FormState, label: string): Html =>
  textField(state, { name: 'q', label, type: 'search', required: false, maxLength: 200 });

/** Renders the search of a list, a GET form. `clear` is the path of the whole list, or null. */
export function searchForm(parts: { action: string; label: string; fields: Child; clear: string | null }): Html {
  const { action, label, fields, clear } = parts;
  return html`<search aria-label="${label}"><form method="get" action="${action}" class="search">
    ${fields}
    <p class="actions"><button type="submit" class="secondary">Search</button>
      ${clear === null ? nothing : html`<a href="${clear}">Clear</a>`}</p>
  </form></search>`;
}
