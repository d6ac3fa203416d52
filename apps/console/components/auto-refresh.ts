import { hash } from 'node:crypto';
import { attributes, type Child, type Html, html } from '#runtime/pages/html.ts';

/**
 * Renders a part of a page that stays up to date. While the page is visible, htmx requests it again
 * every `everySeconds`, and changes what is different in it when what it shows (`shown`) has changed.
 * Whatever has an id, and what contains it, is recognized when it moves: each row of a list contains
 * an id of its own. A control that stays keeps the focus; the part gets it when the control is gone.
 *
 * A response without the attributes, which `shown` null renders, ends the requests. `id` is unique
 * in the page. The script announces changed badges to screen readers. Without a script, a reload
 * updates the part.
 */
export function autoRefresh(parts: {
  id: string;
  href: string;
  everySeconds: number;
  shown: unknown;
  body: Child;
}): Html {
  const { id, href, everySeconds, shown, body } = parts;
  if (shown === null) return html`<div id="${id}" class="auto-refresh" tabindex="-1">${body}</div>`;
  const trigger = attributes({
    'data-version': hashContent(shown),
    'hx-get': href,
    'hx-trigger': `every ${everySeconds}s, refresh`,
    'hx-select': `#${id}`,
    'hx-target': 'this',
    'hx-swap': 'outerMorph',
  });
  return html`<div id="${id}" class="auto-refresh" tabindex="-1"${trigger}>${body}</div>`;
}

/** Returns a short hash of what a part of a page shows. */
const hashContent = (shown: unknown): string => hash('sha256', JSON.stringify(shown), 'base64url').slice(0, 16);
