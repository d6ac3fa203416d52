import { nameCharacters, unseenCharacters } from '#domain/contract/unseen-characters.ts';
import { type Html, html } from '#runtime/pages/html.ts';

/**
 * Returns received text as markup, isolated from the text around it. Names characters that could
 * affect that text or hide.
 */
export function foreignText(text: string): Html {
  const parts: Html[] = [];
  let end = 0;
  for (const { index, 0: run } of text.matchAll(unseenCharacters)) {
    parts.push(html`${text.slice(end, index)}<span class="unseen">${nameCharacters(run)}</span>`);
    end = index + run.length;
  }
  return html`<bdi>${parts}${text.slice(end)}</bdi>`;
}
