import { type Html, html, nothing } from '../web/html.ts';

/**
 * Characters that could act on what stands around them or hide: controls but for line breaks and
 * tabs, everything that is for formatting alone (right-to-left overrides, zero-width ones, tags),
 * other kinds of line ends, private ones. A run of the same is one match.
 */
const unseen = /((?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}])\1*/gu;

/** `U+202E`, and how often it stands there. */
function nameOf(run: string): string {
  const [first = ''] = run;
  const count = run.length / first.length;
  const name = `U+${(first.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
  return count === 1 ? name : `${name} ×${count}`;
}

/**
 * Somebody else's text on one line of ours, where no markup can stand: what would act or hide is
 * named instead.
 */
export const plainText = (text: string): string => text.replace(unseen, (run) => `[${nameOf(run)}]`);

/** The same as markup, apart from the text around it. */
export function foreignText(text: string): Html {
  const parts: Html[] = [];
  let end = 0;
  for (const { index, 0: run } of text.matchAll(unseen)) {
    parts.push(html`${text.slice(end, index)}<span class="unseen">${nameOf(run)}</span>`);
    end = index + run.length;
  }
  return html`<bdi>${parts}${text.slice(end)}</bdi>`;
}

/**
 * What another system sent, as text: nothing in it acts on the page, whatever it holds. Long lines
 * wrap, long texts scroll, what is not UTF-8 is shown as �.
 *
 * @param label - names it for screen readers.
 */
export function receivedText(label: string, sent: Buffer | string): Html {
  const text = typeof sent === 'string' ? sent : decode(sent);
  const broken = text.split('\uFFFD').length - 1;
  return html`<pre class="received" dir="ltr" tabindex="0" role="region" aria-label="${label}"><code>${foreignText(text.replaceAll('\r\n', '\n'))}</code></pre>
    ${broken > 0 && typeof sent !== 'string' ? html`<p class="quiet">Bytes that are not UTF-8 text are shown as �.</p>` : nothing}`;
}

/** A character that was cut off at the end is left out. */
const decode = (bytes: Buffer): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true });
