import { attributes, type Child, type Html, html, nothing } from '../web/html.ts';

/**
 * Draws a part of a page that htmx requests again every few seconds while `moves` is true. A response
 * without the trigger ends that. `id` is unique in the page. The script announces changed badges to
 * screen readers. Without a script, a reload updates the part.
 */
export function live(parts: { id: string; href: string; everySeconds: number; moves: boolean; body: Child }): Html {
  const { id, href, everySeconds, moves, body } = parts;
  const trigger = attributes({
    'hx-get': href,
    'hx-trigger': `every ${everySeconds}s`,
    'hx-select': `#${id}`,
    'hx-target': 'this',
    'hx-swap': 'outerHTML',
  });
  return html`<div id="${id}" class="live"${moves ? trigger : nothing}>${body}</div>`;
}
