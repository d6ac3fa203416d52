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

/** Returns the page that asks for the second factor before a form with a password is rendered. */
export const askStepUp = (visit: PersonVisit): Promise<Page> => stepUpPage(visit, null, null);

/**
 * Renders the question for the second factor.
 *
 * @param waiting - the form that waits; `open` when it stays open beneath a dialog; null when it is
 * rendered afterwards.
 * @param tried - the factor that was rejected.
 */
export async function stepUpPage(
  visit: PersonVisit,
  waiting: URLSearchParams | 'open' | null,
  problem: string | null,
  tried = new URLSearchParams(),
): Promise<Page> {
  const factors = await findAvailableFactors(visit);
  const sent = waiting === 'open' || waiting === null ? [] : [...waiting];
  const carried = sent.flatMap(([name, value]) => (ownFields.has(name) ? [] : hiddenField(name, value)));
  const state = { ...freshForm(Object.fromEntries(tried)), problem };
  return page({
    title,
    status: problem === null ? 200 : 422,
    passkeys: factors.passkey !== null,
    body: html`<section class="dialog" id="step-up" aria-label="${title}">
      ${waiting === 'open' ? html`<h2>${title}</h2>` : nothing}
      <p>This action requires your second factor if you last used it more than 5 minutes ago.
        ${waiting === null ? 'The form comes next.' : 'Your input is kept and submitted next.'}</p>
      ${secondFactorForms(visit, { action: visit.target, factors, carried, state })}
      <div class="dialog-foot">${renderCancel(
        visit,
        waiting === 'open' ? 'open' : waiting === null ? null : carried,
      )}</div>
    </section>`,
  });
}

/** Renders the way back: to the form with its input, or to the page above. */
function renderCancel(visit: PersonVisit, carried: readonly Html[] | 'open' | null): Html {
  if (carried === 'open') return html`<button type="button" class="secondary" data-close>Cancel</button>`;
  if (carried === null) return html`<a href="${visit.path.slice(0, visit.path.lastIndexOf('/')) || '/'}">Cancel</a>`;
  return html`<form method="post" action="${visit.target}">${hiddenFields(visit)}${carried}
    <button type="submit" class="secondary" name="${cancelField}" value="yes">Cancel</button></form>`;
}
