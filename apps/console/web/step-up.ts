import { formIdField, formTokenField, hiddenField } from '../components/form.ts';
import { factorFields, secondFactorForms } from '../components/second-factor.ts';
import { type Page, page } from './answer.ts';
import { freshForm } from './form.ts';
import { html } from './html.ts';
import { refusalOf } from './refusals.ts';
import { consumeSecondFactor, findAvailableFactors } from './second-factor.ts';
import type { PersonVisit } from './visit.ts';

/** A step-up, so far: given now (with the session's new token), or asked for. */
export type StepUpOutcome = { kind: 'given'; token: string } | { kind: 'asked'; page: Page };

const own: ReadonlySet<string> = new Set([formTokenField, formIdField, ...Object.values(factorFields)]);

/**
 * Asks for the second factor before a form is carried out, or takes it when the form brought it
 * along (design, section 7).
 *
 * The form that was sent travels in the question as hidden fields and comes back with the answer to
 * the same address: nothing typed is lost, nothing of it is stored here, and what is carried out in
 * the end is what its person sent, checked like any form. Of a form with a password (`carries`
 * false) nothing travels: it is filled in afterwards.
 */
export async function takeStepUp(visit: PersonVisit, sent: URLSearchParams, carries: boolean): Promise<StepUpOutcome> {
  try {
    const passed = await consumeSecondFactor(visit, (field) => sent.get(field) ?? '');
    if (passed !== null) return { kind: 'given', token: passed.token };
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal === null) throw error;
    return { kind: 'asked', page: await question(visit, carries ? sent : null, refusal.message) };
  }
  return { kind: 'asked', page: await question(visit, carries ? sent : null, null) };
}

/**
 * The same question before a form that may not be carried is drawn: its answer leads back to it.
 */
export const askStepUp = (visit: PersonVisit): Promise<Page> => question(visit, null, null);

async function question(visit: PersonVisit, sent: URLSearchParams | null, problem: string | null): Promise<Page> {
  const factors = await findAvailableFactors(visit);
  const carried = [...(sent ?? [])].filter(([name]) => !own.has(name)).map(([name, value]) => hiddenField(name, value));
  return page({
    title: 'Confirm that it is you',
    status: problem === null ? 200 : 422,
    passkeys: factors.passkey !== null,
    body: html`<p>This asks for your second factor when it was last given more than 5 minutes ago. ${
      sent === null ? 'The form comes next.' : 'What you entered is kept and carried out next.'
    }</p>
      ${secondFactorForms(visit, { action: visit.target, factors, carried, state: { ...freshForm(), problem } })}`,
  });
}
