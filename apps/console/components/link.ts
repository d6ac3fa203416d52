import { type Child, type Html, html } from '../web/html.ts';

/**
 * A link within the console that looks like a button. `href` is a path of ours, never what a person
 * typed.
 */
export function linkButton(href: string, label: Child, kind: 'primary' | 'secondary' = 'primary'): Html {
  return html`<a class="${kind === 'primary' ? 'button' : 'button secondary outline'}" href="${href}" role="button">${label}</a>`;
}
