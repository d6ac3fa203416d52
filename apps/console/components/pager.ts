import { type Html, html, nothing } from '../web/html.ts';

/**
 * Draws links to newer and older pages of a list. A null cursor means that there is no such page.
 * `href` returns a path with the filter and the cursor.
 */
export function pager(parts: {
  newer: string | null;
  older: string | null;
  href: (cursor: string) => string;
  firstHref?: string;
  /** The labels of the links, for a list that is not ordered by time. */
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
