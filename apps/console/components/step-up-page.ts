import { type Html, html, nothing } from '#runtime/pages/html.ts';
import { freshForm } from '../web/form.ts';
import { type Page, page } from '../web/response.ts';
import { factorFields, findAvailableFactors } from '../web/second-factor.ts';
import type { PersonVisit } from '../web/visit.ts';
import { formIdField, formTokenField, hiddenField, hiddenFields } from './form.ts';
import { secondFactorForms } from './second-factor.ts';

const title = 'Confirm your identity';

/** Sent by the Cancel button: the form is rendered again with its input. */
export const cancelField = '_cancel';

/** The fields of a step-up itself, which are not carried. */
const ownFields: ReadonlySet<string> = new Set([
  formTokenField,
  formIdField,
  cancelField,
  ...Object.values(factorFields),
]);

/**
 * What follows the question with the form that waits: it is `submitted`; it has a secret, so that it
 * is `rendered` with its other input, or its page is `opened`; it is `open` beneath a dialog.
 */
export type AfterStepUp = 'submitted' | 'rendered' | 'opened' | 'open';

const whatFollows: Readonly<Record<AfterStepUp, string>> = {
  submitted: 'Your input is kept and submitted next.',
  open: 'Your input is kept and submitted next.',
  rendered: 'The form comes next with your input, except passwords and other secrets.',
  opened: 'The form comes next.',
};

/**
 * Renders the question for the second factor.
 *
 * @param fields - those of the waiting form, and the factor that was rejected.
 */
export async function stepUpPage(
  visit: PersonVisit,
  follows: AfterStepUp,
  { fields = new URLSearchParams(), problem = null }: { fields?: URLSearchParams; problem?: string | null } = {},
): Promise<Page> {
  const factors = await findAvailableFactors(visit);
  const isCarried = follows === 'submitted' || follows === 'rendered';
  const waiting = isCarried ? [...fields].filter(([name]) => !ownFields.has(name)) : [];
  const carried = waiting.map(([name, value]) => hiddenField(name, value));
  const state = { ...freshForm(Object.fromEntries(fields)), problem };
  return page({
    title,
    status: problem === null ? 200 : 422,
    passkeys: factors.passkey !== null,
    body: html`<section class="dialog" id="step-up" aria-label="${title}">
      ${follows === 'open' ? html`<h2>${title}</h2>` : nothing}
      <p>This action requires your second factor if you last used it more than 5 minutes ago.
        ${whatFollows[follows]}</p>
      ${secondFactorForms(visit, { action: visit.target, factors, carried, state })}
      <div class="dialog-foot">${renderCancel(visit, follows, carried)}</div>
    </section>`,
  });
}

/** Renders the way back: to the form with its input, or to the page above. */
function renderCancel(visit: PersonVisit, follows: AfterStepUp, carried: readonly Html[]): Html {
  if (follows === 'open') return html`<button type="button" class="secondary" data-close>Cancel</button>`;
  if (follows === 'opened')
    return html`<a href="${visit.path.slice(0, visit.path.lastIndexOf('/')) || '/'}">Cancel</a>`;
  return html`<form method="post" action="${visit.target}">${hiddenFields(visit)}${carried}
    <button type="submit" class="secondary" name="${cancelField}" value="yes">Cancel</button></form>`;
}
