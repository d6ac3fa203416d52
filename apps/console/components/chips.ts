import { type Html, html, nothing } from '#runtime/pages/html.ts';

/** Renders short codes side by side, the first `atMost` of them; the rest is folded. */
export function chips(texts: readonly string[], atMost = 2): Html {
  // One more takes no more room than the fold.
  const shown = texts.length <= atMost + 1 ? texts.length : atMost;
  const rest = texts.slice(shown);
  const chip = (text: string) => html`<li><code class="chip">${text}</code></li>`;
  return html`<ul class="chips">${texts.slice(0, shown).map(chip)}${
    rest.length === 0
      ? nothing
      : html`<li><details><summary>${rest.length} more</summary><ul class="chips">${rest.map(chip)}</ul></details></li>`
  }</ul>`;
}
