import { type Child, type Html, html } from '../web/html.ts';

/**
 * Draws a part of a page that htmx requests again every few seconds while `moves` is true. A response
 * without the trigger ends that. `id` is unique in the page. The script announces changed badges to
 * screen readers. Without a script, a reload updates the part.
 */
export function live(parts: { id: string; href: string; everySeconds: number; moves: boolean; body: Child }): Html {
  const { id, href, everySeconds, moves, body } = parts;
  if (!moves) return html`<div id="${id}">${body}</div>`;
  return html`<div id="${id}" hx-get="${href}" hx-trigger="every ${everySeconds}s" hx-select="#${id}" hx-target="this" hx-swap="outerHTML">${body}</div>`;
}
