import { encode } from 'uqr';
import { type FormState, textOf } from '../web/form.ts';
import { type Html, html, trusted } from '../web/html.ts';
import { copyable } from './secret.ts';

/** Draws the set-up of an authenticator app: a QR code, or the secret to type. */
export function totpSetup({ secret, uri }: { secret: string; uri: string }): Html {
  return html`<ol class="steps">
    <li><p>Open your authenticator app and scan this code.</p>${qrCode(uri, 'QR code for your authenticator app')}
      <details class="aside"><summary>Can’t scan it? Enter the key</summary>
        <p>In the app, choose “time-based” and enter this key:</p>
        ${copyable('key', secret.replace(/(.{4})(?=.)/g, '$1 '))}
      </details></li>
    <li><p>Enter the code from the app.</p></li>
  </ol>`;
}

/** Returns the secret and URI of a submitted form, to draw them again; null if they are malformed. */
export function totpDrawnAgain(state: FormState): { secret: string; uri: string } | null {
  const [secret, uri] = [textOf(state, 'secret'), textOf(state, 'uri')];
  return /^[A-Z2-7]{16,100}$/.test(secret) && /^otpauth:\/\/totp\/[\x21-\x7e]{1,500}$/.test(uri)
    ? { secret, uri }
    : null;
}

/** Draws a QR code, black on white in both color schemes: some cameras read no inverted code. */
function qrCode(text: string, label: string): Html {
  const { data, size } = encode(text, { ecc: 'M', border: 4 });
  const modules = data.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : [])));
  // This markup contains only numbers and a fixed label.
  return trusted(
    `<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="${label.replace(/[^\w ]/g, '')}" ` +
      'shape-rendering="crispEdges">' +
      `<rect width="${size}" height="${size}" fill="#fff"/><path d="${modules.join('')}" fill="#000"/></svg>`,
  );
}
