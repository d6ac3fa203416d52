import { type Child, type Html, html } from '../web/html.ts';

/**
 * What a notice is about: `good` something worked, `bad` something was refused, `warning` think
 * first, `info` the rest.
 */
export type NoticeKind = 'good' | 'bad' | 'warning' | 'info';

/** A boxed sentence. Good and bad ones are read out at once by screen readers. */
export function notice(kind: NoticeKind, body: Child): Html {
  const role = kind === 'bad' ? 'alert' : kind === 'good' ? 'status' : 'note';
  return html`<div class="notice notice-${kind}" role="${role}">${body}</div>`;
}

/** A short word for a state, colored; the word alone says it. */
export function badge(kind: NoticeKind | 'plain', text: string): Html {
  return html`<span class="badge badge-${kind}">${text}</span>`;
}
