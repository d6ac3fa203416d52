import { type Child, type Html, html, nothing } from '#runtime/pages/html.ts';

export interface Tab {
  label: Child;
  href: string;
  isHere: boolean;
}

/** Renders tabs as a list of links; `label` names the list for screen readers. */
export function tabs(label: string, all: readonly Tab[]): Html {
  return html`<nav class="tabs" aria-label="${label}"><ul>${all.map(
    (tab) => html`<li><a href="${tab.href}"${tab.isHere ? html` aria-current="page"` : nothing}>${tab.label}</a></li>`,
  )}</ul></nav>`;
}
