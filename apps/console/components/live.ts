import { hash } from 'node:crypto';
import { attributes, type Child, type Html, html } from '../web/html.ts';

/**
 * Renders a part of a page that stays up to date. While the page is visible, htmx requests it again
 * every `everySeconds`, and the script replaces the part when what it shows (`shown`) has changed.
 *
 * A response without the attributes, which `shown` null renders, ends the requests. `id` is unique
 * in the page. The script announces changed badges to screen readers. Without a script, a reload
 * updates the part.
 */
export function live(parts: { id: string; href: string; everySeconds: number; shown: unknown; body: Child }): Html {
  const { id, href, everySeconds, shown, body } = parts;
  if (shown === null) return html`<div id="${id}" class="live">${body}</div>`;
  const trigger = attributes({
    'data-version': versionOf(shown),
    'hx-get': href,
    'hx-trigger': `every ${everySeconds}s, refresh`,
    'hx-select': `#${id}`,
    'hx-target': 'this',
    'hx-swap': 'outerHTML',
  });
  return html`<div id="${id}" class="live"${trigger}>${body}</div>`;
}

/** Returns a short hash of what a part of a page shows. */
const versionOf = (shown: unknown): string => hash('sha256', JSON.stringify(shown), 'base64url').slice(0, 16);
