import { type ReadableResponse, readResponse } from '#domain/webhooks/response-text.ts';
import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { foreignText } from './foreign-text.ts';
import { highlightJson } from './json.ts';

/**
 * Renders the body of a response as inert text. Long lines wrap, and long texts scroll. Bytes that
 * have a `Content-Encoding` are shown in hex, others that are not UTF-8 as U+FFFD.
 *
 * @param label - names it for screen readers.
 */
export function receivedText(label: string, response: Buffer, encoding: string | null): Html {
  const read = readResponse(response, encoding);
  const rendered =
    'hex' in read
      ? (read.hex.match(/.{1,64}/g) ?? []).join('\n')
      : (highlightJson(read.text) ?? foreignText(read.text.replaceAll('\r\n', '\n')));
  return html`${renderNote(read, encoding)}
    <pre class="received json" dir="ltr" tabindex="0" role="region" aria-label="${label}"
      ><code>${rendered}</code></pre>`;
}

function renderNote(read: ReadableResponse, encoding: string | null): Html {
  if ('hex' in read)
    return html`<p class="quiet">The body has the encoding ${foreignText(encoding ?? '')}, which the request did not ask
      for. Its bytes are shown in hex.</p>`;
  return read.text.includes('\uFFFD')
    ? html`<p class="quiet">Bytes that are not UTF-8 text are shown as \uFFFD.</p>`
    : nothing;
}
