import { encode } from 'uqr';
import { z } from 'zod';
import { type Child, type Html, html, trusted } from '#runtime/pages/html.ts';
import { type FormState, getText } from '../web/form.ts';
import { totpCode } from '../web/second-factor.ts';
import type { Visit } from '../web/visit.ts';
import { form, hiddenField } from './form.ts';
import { codeField } from './second-factor.ts';
import { copyable } from './secret.ts';

/**
 * The fields of the form that verifies a new authenticator app. Secret and URI are only rendered
 * again after a wrong code; the domain uses its sealed copy.
 */
export const totpFields = {
  code: totpCode,
  secret: z.string().max(100),
  uri: z.string().max(500),
};

/** Renders the set-up of an authenticator app, and the form that verifies its first code. */
export function totpForm(
  visit: Visit,
  { secret, uri }: { secret: string; uri: string },
  parts: { action: string; state: FormState; button: string; fields?: Child; secondary?: Child },
): Html {
  const { state, fields, ...rest } = parts;
  const hidden = html`${hiddenField('secret', secret)}${hiddenField('uri', uri)}`;
  return html`${totpSteps(secret, uri)}
    ${form(visit, { ...rest, state, fields: html`${hidden}${fields}${codeField(state, 'code')}` })}`;
}

/** Renders a QR code, and the secret to type instead. */
function totpSteps(secret: string, uri: string): Html {
  return html`<ol class="steps">
    <li><p>Open your authenticator app and scan this code.</p>${qrCode(uri, 'QR code for your authenticator app')}
      <details class="aside"><summary>Can’t scan it? Enter the key</summary>
        <p>In the app, choose “time-based” and enter this key:</p>
        ${copyable('key', secret.replace(/(.{4})(?=.)/g, '$1 '))}
      </details></li>
    <li><p>Enter the code from the app.</p></li>
  </ol>`;
}

/** Returns the secret and URI of a submitted form; null if they are malformed. */
export function totpDrawnAgain(state: FormState): { secret: string; uri: string } | null {
  const [secret, uri] = [getText(state, 'secret'), getText(state, 'uri')];
  return /^[A-Z2-7]{16,100}$/.test(secret) && /^otpauth:\/\/totp\/[\x21-\x7e]{1,500}$/.test(uri)
    ? { secret, uri }
    : null;
}

/** Renders a QR code, black on white in both color schemes: some cameras read no inverted code. */
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
