import { type Child, type Html, html } from '#runtime/pages/html.ts';

/** Renders a link that looks like a button. `href` is a path of the console, never typed input. */
export function linkButton(href: string, label: Child, kind: 'primary' | 'secondary' = 'primary'): Html {
  return html`<a class="button${kind === 'primary' ? '' : ' secondary'}" href="${href}">${label}</a>`;
}
