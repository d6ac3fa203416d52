import { type FormState, textOf } from '../web/form.ts';
import { type Html, html } from '../web/html.ts';
import { qrCode } from './qr.ts';
import { copyable } from './secret.ts';

/** How an authenticator app gets its secret: a QR code to scan, or the secret to type. */
export function totpSetup({ secret, uri }: { secret: string; uri: string }): Html {
  return html`<ol class="steps">
    <li><p>Open your authenticator app and scan this code.</p>${qrCode(uri, 'QR code for your authenticator app')}
      <details class="aside"><summary>Can’t scan it? Enter the key</summary>
        <p>In the app, choose “time-based” and enter this key:</p>${copyable('key', secret.replace(/(.{4})(?=.)/g, '$1 '))}
      </details></li>
    <li><p>Enter the code from the app.</p></li>
  </ol>`;
}

/**
 * The secret and URI that a form brought back to be drawn again, after a mistyped code; null when
 * they are not what we gave, and the set-up begins anew.
 */
export function totpDrawnAgain(state: FormState): { secret: string; uri: string } | null {
  const [secret, uri] = [textOf(state, 'secret'), textOf(state, 'uri')];
  return /^[A-Z2-7]{16,100}$/.test(secret) && /^otpauth:\/\/totp\/[\x21-\x7e]{1,500}$/.test(uri)
    ? { secret, uri }
    : null;
}
