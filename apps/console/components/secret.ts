import { type Html, html } from '../web/html.ts';

/**
 * A value to copy, with a button that does so. `label` names it for screen readers and for the
 * button.
 */
export function copyable(label: string, value: string, options: { multiline?: boolean } = {}): Html {
  return html`<div class="copyable">
    <pre class="${options.multiline ? 'wrap' : ''}" tabindex="0" role="region" aria-label="${label}"><code>${value}</code></pre>
    <button type="button" class="secondary outline" data-copy hidden>Copy<span class="visually-hidden"> ${label}</span></button>
  </div>`;
}

/** A secret that is shown this once, with what to do with it. `several`: of its kind. */
export function shownOnce(parts: { label: string; value: string; advice: string; several?: boolean }): Html {
  return html`<section class="shown-once" aria-label="${parts.label}">
    <h2>${parts.label}</h2>
    <p><strong>This is the only time ${parts.several ? 'they are' : 'it is'} shown.</strong> ${parts.advice}</p>
    ${copyable(`${parts.label}, to copy`, parts.value, { multiline: true })}
  </section>`;
}
