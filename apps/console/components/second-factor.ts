import type { startPasskeyUse } from '#domain/identity/second-factor.ts';
import type { FormState } from '../web/form.ts';
import { type Child, type Html, html, nothing } from '../web/html.ts';
import type { Visit } from '../web/visit.ts';
import { form, hiddenField, textField } from './form.ts';
import { notice } from './notice.ts';

/** The form fields of a second factor. One of them has a value. */
export const factorFields = { code: 'factorCode', passkey: 'factorPasskey', recoveryCode: 'factorRecovery' } as const;

/** The factors that a person can use. `passkey`: the options for the browser; null without one. */
export interface AvailableFactors {
  hasTotp: boolean;
  passkey: Awaited<ReturnType<typeof startPasskeyUse>> | null;
}

/** Draws a form per available factor, all to one path. `carried` are fields in each of them. */
export function secondFactorForms(
  visit: Visit,
  parts: { action: string; factors: AvailableFactors; state: FormState; carried?: Child },
): Html {
  const { action, factors, state, carried } = parts;
  const each = { action, state: { ...state, problem: null } };
  return html`<div class="second-factor">
    ${state.problem === null ? nothing : notice('bad', state.problem)}
    ${factors.passkey === null ? nothing : passkeyForm(visit, { ...each, ...carriedOf(carried), ceremony: 'get', options: factors.passkey, field: factorFields.passkey, button: 'Use a passkey' })}
    ${factors.passkey !== null && factors.hasTotp ? html`<p class="or">or</p>` : nothing}
    ${
      factors.hasTotp
        ? form(visit, {
            ...each,
            fields: html`${carried}${codeField(each.state, factorFields.code, factors.passkey === null)}`,
            button: 'Continue',
            kind: factors.passkey === null ? 'primary' : 'secondary',
          })
        : nothing
    }
    <details class="aside"><summary>Can’t use it? Use a recovery code</summary>
      ${form(visit, {
        ...each,
        fields: html`${carried}${textField(each.state, {
          name: factorFields.recoveryCode,
          label: 'Recovery code',
          hint: 'One of the ten codes that you saved when you enrolled. Each works once.',
          exact: true,
          maxLength: 60,
        })}`,
        button: 'Use recovery code',
        kind: 'secondary',
      })}
    </details>
  </div>`;
}

/** Draws the field for an authenticator code. */
export function codeField(state: FormState, name: string, autofocus = false): Html {
  return textField(state, {
    name,
    label: 'Authenticator code',
    hint: 'Six digits that change every 30 seconds.',
    autocomplete: 'one-time-code',
    inputMode: 'numeric',
    maxLength: 9,
    exact: true,
    autofocus,
  });
}

/**
 * Draws a form that a passkey fills in: the script asks the browser (`create` a passkey, or `get` a
 * response), puts the response into `field` and submits the form. `options` contain no secret.
 */
export function passkeyForm(
  visit: Visit,
  parts: {
    action: string;
    state: FormState;
    ceremony: 'create' | 'get';
    options: object;
    field: string;
    button: string;
    carried?: Child;
    fields?: Child;
  },
): Html {
  const { action, state, ceremony, options, field, button, carried, fields } = parts;
  return form(visit, {
    action,
    state,
    button,
    attributes: { 'data-passkey': ceremony, 'data-options': JSON.stringify(options), 'data-field': field },
    fields: html`${carried}${hiddenField(field, '')}${fields}
      <p class="problem" data-passkey-problem role="alert" hidden></p>
      <noscript><p class="problem">Passkeys need JavaScript. Allow it for this page, or use another method.</p></noscript>`,
  });
}

const carriedOf = (carried: Child | undefined) => (carried === undefined ? {} : { carried });
