import { type Html, html, nothing } from '#runtime/pages/html.ts';

/**
 * Renders links to the first, newer and older pages of a list. A null cursor means that there is no
 * such page. `href` returns a path with the filter and the cursor; without a cursor, the first
 * page.
 */
export function pager(parts: {
  isFirst: boolean;
  newer?: string | null;
  older: string | null;
  href: (cursor: string | null) => string;
  /** The labels of the links, for a list that is not ordered by time. */
  words?: { first: string; newer: string; older: string };
}): Html {
  const { isFirst, newer = null, older, href } = parts;
  const words = parts.words ?? { first: 'Newest', newer: 'Newer', older: 'Older' };
  if (isFirst && newer === null && older === null) return nothing;
  return html`<nav class="pager" aria-label="Pages">
    ${isFirst ? nothing : html`<a href="${href(null)}">${words.first}</a>`}
    ${newer === null ? nothing : html`<a rel="prev" href="${href(newer)}">${words.newer}</a>`}
    ${older === null ? nothing : html`<a rel="next" href="${href(older)}">${words.older}</a>`}
  </nav>`;
}
