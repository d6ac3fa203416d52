import { type Child, type Html, html, nothing } from '#runtime/pages/html.ts';
import { type IconName, icon } from './icon.ts';

/** Renders an empty list: what the list is for, and how to get the first entry. */
export function emptyState(parts: { title: string; body: Child; action?: Child; icon?: IconName }): Html {
  return html`<section class="empty-state">
    ${icon(parts.icon ?? 'search')}
    <h2>${parts.title}</h2>
    <p>${parts.body}</p>
    ${parts.action ? html`<p class="actions">${parts.action}</p>` : nothing}
  </section>`;
}
