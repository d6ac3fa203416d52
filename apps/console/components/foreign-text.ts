import { type Html, html } from '../web/html.ts';

/**
 * Characters that could affect the text around them or hide: controls except line breaks and tabs,
 * formatting characters (right-to-left overrides, zero-width characters, tags), other line ends,
 * private-use characters. A run of one character is one match.
 */
const unseen = /((?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}])\1*/gu;

/** Returns `U+202E`, and how often it repeats. */
function nameOf(run: string): string {
  const [first = ''] = run;
  const count = run.length / first.length;
  const name = `U+${(first.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
  return count === 1 ? name : `${name} ×${count}`;
}

/** Returns received text for a place without markup; names such characters instead. */
export const plainText = (text: string): string => text.replace(unseen, (run) => `[${nameOf(run)}]`);

/** Returns the same as markup, isolated from the text around it. */
export function foreignText(text: string): Html {
  const parts: Html[] = [];
  let end = 0;
  for (const { index, 0: run } of text.matchAll(unseen)) {
    parts.push(html`${text.slice(end, index)}<span class="unseen">${nameOf(run)}</span>`);
    end = index + run.length;
  }
  return html`<bdi>${parts}${text.slice(end)}</bdi>`;
}
