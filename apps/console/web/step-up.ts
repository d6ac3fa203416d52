import { findSession, needsStepUp } from '#domain/identity/sessions.ts';
import { formIdField, formTokenField, hiddenField, hiddenFields } from '../components/form.ts';
import { factorFields, secondFactorForms } from '../components/second-factor.ts';
import { type Page, page, redirect } from './answer.ts';
import { setCookie } from './cookies.ts';
import { formToken } from './csrf.ts';
import { freshForm, hasSecret } from './form.ts';
import { type Html, html, nothing } from './html.ts';
import { refusalOf } from './refusals.ts';
import { respond } from './respond.ts';
import { consumeSecondFactor, findAvailableFactors } from './second-factor.ts';
import type { RouteContext, RouteMiddleware } from './state.ts';
import type { PersonVisit } from './visit.ts';

const title = 'Confirm your identity';

/** Sent by the Cancel button: the form is rendered again with its input. */
const cancelField = '_cancel';

/**
 * A request with this header asks whether a form may be carried out, and carries nothing out. The
 * script sends it before the form, and shows the answer in a dialog: 204 when the second factor is
 * fresh, else the page that asks for it.
 */
const checkHeader = 'X-Step-Up-Check';

/** The answer's token for the forms of the open page, after a check that renewed the session. */
const formTokenHeader = 'X-Form-Token';

const isCheck = (ctx: RouteContext): boolean => ctx.get(checkHeader) !== '';

/** The fields of a step-up itself, which are not carried. */
const ownFields: ReadonlySet<string> = new Set([
  formTokenField,
  formIdField,
  cancelField,
  ...Object.values(factorFields),
]);

/**
 * Requires a fresh second factor before a form is carried out: verifies the one in the form, or
 * asks for it.
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
  if (isCarried && form.fields.get(cancelField) !== null && route.rerender !== null)
    return respond(ctx, await route.rerender(visit, freshForm(form.values)));
  const { token, problem } = await takeFactor(visit, form.fields);
  if (token === null) {
    ctx.state.code = 'step_up_needed';
    const waiting = isCheck(ctx) ? 'open' : isCarried ? form.fields : null;
    return respond(ctx, await stepUpPage(visit, waiting, problem, form.fields));
  }
  await renewSession(ctx, token);
  // A form is sent to the address of its page.
  return isCarried || isCheck(ctx) ? next() : respond(ctx, redirect(visit.path));
};

/** Answers a check that every earlier middleware let pass: the form may be submitted. */
export const answerCheck: RouteMiddleware = (ctx, next) => {
  if (!isCheck(ctx)) return next();
  ctx.status = 204;
};

/** Returns the page that asks for the second factor before a form with a password is rendered. */
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
  if (isCheck(ctx)) ctx.set(formTokenHeader, ctx.state.visit.formToken);
}

/**
 * Renders the question for the second factor.
 *
 * @param waiting - the form that waits; `open` when it stays open beneath a dialog; null when it is
 * rendered afterwards.
 * @param tried - the factor that was refused.
 */
async function stepUpPage(
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
      <div class="dialog-foot">${cancelOf(visit, waiting === 'open' ? 'open' : waiting === null ? null : carried)}</div>
    </section>`,
  });
}

/** Renders the way back: to the form with its input, or to the page above. */
function cancelOf(visit: PersonVisit, carried: readonly Html[] | 'open' | null): Html {
  if (carried === 'open') return html`<button type="button" class="secondary" data-close>Cancel</button>`;
  if (carried === null) return html`<a href="${visit.path.slice(0, visit.path.lastIndexOf('/')) || '/'}">Cancel</a>`;
  return html`<form method="post" action="${visit.target}">${hiddenFields(visit)}${carried}
    <button type="submit" class="secondary" name="${cancelField}" value="yes">Cancel</button></form>`;
}
