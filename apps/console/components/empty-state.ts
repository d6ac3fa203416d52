import { type Child, type Html, html } from '../web/html.ts';

/** Draws an empty list: what the list is for, and how to get the first entry. */
export function emptyState(parts: { title: string; body: Child; action?: Child }): Html {
  return html`<section class="empty-state">
    <h2>${parts.title}</h2>
    <div>${parts.body}</div>
    ${parts.action ? html`<p class="actions">${parts.action}</p>` : null}
  </section>`;
}
