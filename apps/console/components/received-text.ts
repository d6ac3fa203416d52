import { type Html, html, nothing } from '../web/html.ts';
import { foreignText } from './foreign-text.ts';
import { highlightJson } from './json.ts';

/**
 * Renders what another system sent as inert text. Long lines wrap, long texts scroll, and bytes
 * that are not UTF-8 show as �.
 *
 * @param label - names it for screen readers.
 */
export function receivedText(label: string, sent: Buffer | string): Html {
  const text = typeof sent === 'string' ? sent : decode(sent);
  const broken = text.split('\uFFFD').length - 1;
  const rendered = highlightJson(text) ?? foreignText(text.replaceAll('\r\n', '\n'));
  const note = html`<p class="quiet">Bytes that are not UTF-8 text are shown as �.</p>`;
  return html`<pre class="received json" dir="ltr" tabindex="0" role="region" aria-label="${
    label
  }"><code>${rendered}</code></pre>
    ${broken > 0 && typeof sent !== 'string' ? note : nothing}`;
}

/** Omits a character that is cut off at the end. */
const decode = (bytes: Buffer): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true });
