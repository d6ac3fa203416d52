import { attributes, type Child, type Html, html, nothing } from '#runtime/pages/html.ts';
import { type FormState, getText } from '../web/form.ts';
import { type AvailableFactors, factorFields } from '../web/second-factor.ts';
import type { Visit } from '../web/visit.ts';
import { form, hiddenField, textField } from './form.ts';
import { notice } from './notice.ts';

/**
 * Renders a form per available factor, all to one path. `carried` are fields in each of them. The
 * problem of a code is at its field, which is empty again.
 */
export function secondFactorForms(
  visit: Visit,
  parts: { action: string; factors: AvailableFactors; state: FormState; carried?: Child },
): Html {
  const { action, factors, state, carried } = parts;
  const { code, recoveryCode } = factorFields;
  const field = [code, recoveryCode].find((name) => getText(state, name) !== '') ?? null;
  const problems = field === null || state.problem === null ? {} : { [field]: state.problem };
  // These forms contain the factor, so that the script asks for none before them.
  const each = { action, state: { values: {}, problems, problem: null }, attributes: { 'data-step-up': false } };
  const passkey = {
    ...each,
    fields: carried,
    ceremony: 'get' as const,
    field: factorFields.passkey,
    button: 'Use a passkey',
  };
  const recovery = textField(each.state, {
    name: recoveryCode,
    label: 'Recovery code',
    hint: 'One of the codes that you saved. Each works once.',
    exact: true,
    maxLength: 60,
  });
  return html`<div class="second-factor">
    ${state.problem === null || field !== null ? nothing : notice('bad', state.problem)}
    ${factors.passkey === null ? nothing : passkeyForm(visit, { ...passkey, options: factors.passkey })}
    ${factors.passkey !== null && factors.hasTotp ? html`<p class="or">or</p>` : nothing}
    ${
      factors.hasTotp
        ? form(visit, {
            ...each,
            fields: html`${carried}${codeField(each.state, code, factors.passkey === null)}`,
            button: 'Continue',
            kind: factors.passkey === null ? 'primary' : 'secondary',
          })
        : nothing
    }
    <details class="aside"${attributes({ open: field === recoveryCode })}>
      <summary>Can’t use it? Use a recovery code</summary>
      ${form(visit, { ...each, fields: html`${carried}${recovery}`, button: 'Use recovery code', kind: 'secondary' })}
    </details>
  </div>`;
}

/** Renders the field for an authenticator code. */
export function codeField(state: FormState, name: string, autofocus = false): Html {
  // A code works once, so the field is empty again.
  return textField(
    { ...state, values: {} },
    {
      name,
      label: 'Authenticator code',
      hint: 'Six digits that change every 30 seconds.',
      autocomplete: 'one-time-code',
      inputMode: 'numeric',
      maxLength: 9,
      exact: true,
      autofocus,
    },
  );
}

/**
 * Renders a form that a passkey fills in: the script asks the browser (`create` a passkey, or `get`
 * a response), puts the response into `field` and submits the form. `options` contain no secret.
 */
function passkeyForm(
  visit: Visit,
  parts: {
    action: string;
    state: FormState;
    ceremony: 'create' | 'get';
    options: object;
    field: string;
    button: string;
    fields?: Child;
  },
): Html {
  const { action, state, ceremony, options, field, button, fields } = parts;
  return form(visit, {
    action,
    state,
    button,
    attributes: { 'data-passkey': ceremony, 'data-options': JSON.stringify(options), 'data-field': field },
    fields: html`${hiddenField(field, '')}${fields}
      <p class="problem" data-passkey-problem role="alert" hidden></p>
      <noscript><p class="problem">Passkeys need JavaScript. Allow it for this page, or use another
        method.</p></noscript>`,
  });
}

/** Renders the form that registers a passkey; its response is in the field `passkey`. */
export const newPasskeyForm = (
  visit: Visit,
  parts: { action: string; state: FormState; options: object; fields?: Child },
): Html =>
  html`<p>Your browser asks for your fingerprint, face, PIN or security key.</p>
    ${passkeyForm(visit, { ...parts, ceremony: 'create', field: 'passkey', button: 'Create passkey' })}`;
