import { type Child, type Html, html } from '../web/html.ts';

/**
 * A part of a page that the browser asks for again every few seconds while `moves`, by htmx: the
 * same page, of which only this part is taken. Without script the page stands still, and a reload
 * brings it up to date. `id` is unique in the page. When nothing moves any more, the part that
 * comes has no trigger, and the asking ends. A badge in it that changes is said to screen readers
 * by the script.
 */
export function live(parts: { id: string; href: string; everySeconds: number; moves: boolean; body: Child }): Html {
  const { id, href, everySeconds, moves, body } = parts;
  if (!moves) return html`<div id="${id}">${body}</div>`;
  return html`<div id="${id}" hx-get="${href}" hx-trigger="every ${everySeconds}s" hx-select="#${id}" hx-target="this" hx-swap="outerHTML">${body}</div>`;
}
