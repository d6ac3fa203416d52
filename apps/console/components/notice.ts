import { type Child, type Html, html } from '#runtime/pages/html.ts';

/** The kind of a notice: success, error, warning or information. */
export type NoticeKind = 'good' | 'bad' | 'warning' | 'info';

/** Renders a boxed sentence. Screen readers announce `good` and `bad` at once. */
export function notice(kind: NoticeKind, body: Child): Html {
  const role = kind === 'bad' ? 'alert' : kind === 'good' ? 'status' : 'note';
  return html`<div class="notice notice-${kind}" role="${role}">${body}</div>`;
}

/** Renders a boxed sentence about what the page shows, which is not news: it is not announced. */
export function statusNotice(kind: NoticeKind, body: Child): Html {
  return html`<div class="notice notice-${kind}" role="note">${body}</div>`;
}

/** Renders a status word. Its color repeats what the word says. */
export function badge(kind: NoticeKind | 'plain', text: string): Html {
  return html`<span class="badge badge-${kind}">${text}</span>`;
}
