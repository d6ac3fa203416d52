import { type Html, html } from '../web/html.ts';

/** Draws a value with a copy button. `label` names it for screen readers. */
export function copyable(label: string, value: string, options: { multiline?: boolean } = {}): Html {
  return html`<div class="copyable">
    <pre class="${options.multiline ? 'wrap' : ''}" tabindex="0" role="region" aria-label="${label}"><code>${value}</code></pre>
    <button type="button" class="secondary outline" data-copy hidden>Copy<span class="visually-hidden"> ${label}</span></button>
  </div>`;
}

/** Draws a secret that is shown once, with advice. `several`: it is a list of secrets. */
export function shownOnce(parts: { label: string; value: string; advice: string; several?: boolean }): Html {
  return html`<section class="shown-once" aria-label="${parts.label}">
    <h2>${parts.label}</h2>
    <p><strong>This is the only time ${parts.several ? 'they are' : 'it is'} shown.</strong> ${parts.advice}</p>
    ${copyable(`${parts.label}, to copy`, parts.value, { multiline: true })}
  </section>`;
}

/** Draws new recovery codes, which are shown once. */
export function recoveryCodes(codes: readonly string[]): Html {
  return shownOnce({
    label: 'Recovery codes',
    value: codes.join('\n'),
    several: true,
    advice:
      'Each code signs you in once if you lose your phone or passkey. Print them, or store them ' +
      'apart from that phone and from your password.',
  });
}
