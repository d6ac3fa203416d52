import { type Html, html, nothing } from '../web/html.ts';

/**
 * Newer and older pages of a list that is paged by key. A cursor is whatever the list's query
 * takes; null: there is no such page. `href` makes a path with the filter kept and the cursor
 * added.
 */
export function pager(parts: {
  newer: string | null;
  older: string | null;
  href: (cursor: string) => string;
  firstHref?: string;
  /** What the links say in a list whose order is not time. */
  words?: { first: string; newer: string; older: string };
}): Html {
  const { newer, older, href, firstHref } = parts;
  const words = parts.words ?? { first: 'Newest', newer: 'Newer', older: 'Older' };
  if (newer === null && older === null && firstHref === undefined) return nothing;
  return html`<nav class="pager" aria-label="Pages">
    ${firstHref === undefined ? nothing : html`<a href="${firstHref}">${words.first}</a>`}
    ${newer === null ? nothing : html`<a rel="prev" href="${href(newer)}">${words.newer}</a>`}
    ${older === null ? nothing : html`<a rel="next" href="${href(older)}">${words.older}</a>`}
  </nav>`;
}
