import { attributes, type Child, type Html, html } from '#runtime/pages/html.ts';
import { highlightJson } from './json.ts';
import { linkButton } from './link.ts';

/** Renders a value with a copy button. `label` names it for screen readers. */
export function copyable(label: string, value: string, options: { multiline?: boolean } = {}): Html {
  return html`<div class="copyable">
    ${region(label, options.multiline ? 'wrap' : '', html`${value}`)}${copyButton(label)}
  </div>`;
}

/** Renders JSON in indented lines with colors. The button copies the text as it was sent. */
export function copyableJson(label: string, sent: string): Html {
  const rendered = highlightJson(sent);
  if (rendered === null) return copyable(label, sent, { multiline: true });
  return html`<div class="copyable">${region(label, 'wrap json', rendered)}${copyButton(label, sent)}</div>`;
}

const region = (label: string, classes: string, content: Html): Html =>
  html`<pre class="${classes}" tabindex="0" role="region" aria-label="${label}"><code>${content}</code></pre>`;

/** Renders the button that the script shows; it copies `text`, or else the content beside it. */
const copyButton = (label: string, text: string | null = null): Html =>
  html`<button type="button" class="secondary"${attributes({ 'data-copy': text ?? true })} hidden>Copy<span
    class="visually-hidden"> ${label}</span></button>`;

/** Renders a secret that is shown once, with advice. `several`: it is a list of secrets. */
export function shownOnce(parts: { label: string; value: string; advice: string; several?: boolean }): Html {
  return html`<section class="shown-once" aria-label="${parts.label}">
    <h2>${parts.label}</h2>
    <p><strong>This is the only time ${parts.several ? 'they are' : 'it is'} shown.</strong> ${parts.advice}</p>
    ${copyable(`${parts.label}, to copy`, parts.value, { multiline: true })}
  </section>`;
}

/** States that a secret is not shown again, and links to what replaces it. */
export const shownBefore = (label: string, advice: Child, href: string, link: Child): Html =>
  html`<p>${label} can’t be shown again. ${advice}</p><p class="actions">${linkButton(href, link)}</p>`;

/** Renders new recovery codes, which are shown once. */
export function recoveryCodes(codes: readonly string[]): Html {
  return shownOnce({
    label: 'Recovery codes',
    value: codes.join('\n'),
    several: true,
    advice:
      'Each code signs you in once if you lose your phone or passkey. Print them, or store them ' +
      'away from that phone and from your password.',
  });
}
