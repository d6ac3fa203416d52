import { findSession, needsStepUp } from '#domain/identity/sessions.ts';
import { formIdField, formTokenField, hiddenField, hiddenFields } from '../components/form.ts';
import { factorFields, secondFactorForms } from '../components/second-factor.ts';
import { type Page, page, redirect } from './answer.ts';
import { setCookie } from './cookies.ts';
import { formToken } from './csrf.ts';
import { freshForm, hasSecret } from './form.ts';
import { type Html, html } from './html.ts';
import { refusalOf } from './refusals.ts';
import { respond } from './respond.ts';
import { consumeSecondFactor, findAvailableFactors } from './second-factor.ts';
import type { RouteContext, RouteMiddleware } from './state.ts';
import type { PersonVisit } from './visit.ts';

/** Sent by the Cancel button: the form is drawn again with its input. */
const cancelField = '_cancel';

/** The fields of a step-up itself, which are not carried. */
const ownFields: ReadonlySet<string> = new Set([
  formTokenField,
  formIdField,
  cancelField,
  ...Object.values(factorFields),
]);

/**
 * Requires a fresh second factor before a form is carried out: verifies the one in the form, or asks
 * for it.
 *
 * The page that asks contains the submitted form as hidden fields and submits them to the same path
 * with the factor. No input is lost, none is stored, and the form is checked again. A form with a
 * password is not carried, so that no page contains one: it is filled in afterwards.
 */
export const stepUp: RouteMiddleware = async (ctx, next) => {
  const { route, form, console } = ctx.state;
  const visit = ctx.state.visit as PersonVisit;
  if (!needsStepUp(visit.session, console.now())) return next();
  const isCarried = !hasSecret(route.schema);
  if (isCarried && form.fields.get(cancelField) !== null && route.redraw !== null)
    return respond(ctx, await route.redraw(visit, freshForm(form.values)));
  const { token, problem } = await takeFactor(visit, form.fields);
  if (token === null) {
    ctx.state.code = 'step_up_needed';
    return respond(ctx, await stepUpPage(visit, isCarried ? form.fields : null, problem, form.fields));
  }
  await renewSession(ctx, token);
  // A form is sent to the address of its page.
  return isCarried ? next() : respond(ctx, redirect(visit.path));
};

/** Returns the page that asks for the second factor before a form with a password is drawn. */
export const askStepUp = (visit: PersonVisit): Promise<Page> => stepUpPage(visit, null, null);

/** Returns the session's new token if the form contains a second factor that is accepted. */
async function takeFactor(
  visit: PersonVisit,
  fields: URLSearchParams,
): Promise<{ token: string | null; problem: string | null }> {
  try {
    const passed = await consumeSecondFactor(visit, (field) => fields.get(field) ?? '');
    return { token: passed?.token ?? null, problem: null };
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal === null) throw error;
    return { token: null, problem: refusal.message };
  }
}

/**
 * Continues with the session's new token. The browser gets it whatever follows, because the old one
 * no longer works.
 */
async function renewSession(ctx: RouteContext, token: string): Promise<void> {
  const { visit, console } = ctx.state;
  setCookie(ctx, 'session', token);
  const session = await findSession(console.em.fork(), token, console.now());
  ctx.state.visit = { ...visit, session, sessionToken: token, formToken: formToken(token) };
}

/** @param sent - the form that waits, null when it is drawn afterwards. @param tried - the factor that was refused. */
async function stepUpPage(
  visit: PersonVisit,
  sent: URLSearchParams | null,
  problem: string | null,
  tried = new URLSearchParams(),
): Promise<Page> {
  const factors = await findAvailableFactors(visit);
  const carried = [...(sent ?? [])].flatMap(([name, value]) => (ownFields.has(name) ? [] : hiddenField(name, value)));
  const state = { ...freshForm(Object.fromEntries(tried)), problem };
  return page({
    title: 'Confirm your identity',
    status: problem === null ? 200 : 422,
    passkeys: factors.passkey !== null,
    body: html`<section class="dialog" id="step-up" aria-label="Confirm your identity">
      <p>This action requires your second factor if you last used it more than 5 minutes ago. ${
        sent === null ? 'The form comes next.' : 'Your input is kept and submitted next.'
      }</p>
      ${secondFactorForms(visit, { action: visit.target, factors, carried, state })}
      <div class="dialog-foot">${cancelOf(visit, sent === null ? null : carried)}</div>
    </section>`,
  });
}

/** Draws the way back: to the form with its input, or to the page above. */
function cancelOf(visit: PersonVisit, carried: readonly Html[] | null): Html {
  if (carried === null) return html`<a href="${visit.path.slice(0, visit.path.lastIndexOf('/')) || '/'}">Cancel</a>`;
  return html`<form method="post" action="${visit.target}">${hiddenFields(visit)}${carried}
    <button type="submit" class="secondary" name="${cancelField}" value="yes">Cancel</button></form>`;
}
