import { findSession, needsStepUp } from '#domain/identity/sessions.ts';
import { type AfterStepUp, cancelField, stepUpPage } from '../components/step-up-page.ts';
import { findDomainProblem } from '../web/domain-problems.ts';
import { type FormValues, freshForm, hasSecret, pickValues, withoutSecrets } from '../web/form.ts';
import { redirect } from '../web/response.ts';
import type { Route } from '../web/route.ts';
import { consumeSecondFactor } from '../web/second-factor.ts';
import type { RouteContext, RouteMiddleware } from '../web/state.ts';
import type { PersonVisit } from '../web/visit.ts';
import { setCookie } from './cookies.ts';
import { formToken } from './csrf.ts';
import { respond } from './respond.ts';

/**
 * A request with this header asks whether a form may be carried out, and carries nothing out. The
 * script sends it before the form, and shows the response in a dialog: 204 when the second factor
 * is fresh, else the page that asks for it.
 */
const checkHeader = 'X-Step-Up-Check';

/** The response's token for the forms of the open page, after a check that renewed the session. */
const formTokenHeader = 'X-Form-Token';

const isCheck = (ctx: RouteContext): boolean => ctx.get(checkHeader) !== '';

/**
 * Requires a fresh second factor before a form is carried out: verifies the one in the form, or
 * asks for it.
 *
 * The page that asks contains the submitted form as hidden fields and submits them to the same path
 * with the factor. No input is lost, none is stored, and the form is checked again. A password is not
 * carried, so that no page contains one: such a form is rendered again with its other input.
 */
export const stepUp: RouteMiddleware = async (ctx, next) => {
  const { route, form, console } = ctx.state;
  const visit = ctx.state.visit as PersonVisit;
  if (!needsStepUp(visit.session, console.now())) return next();
  const { rerender } = route;
  const { fields, values, follows } = describeWaiting(ctx);
  if (form.fields.has(cancelField) && rerender !== null) return respond(ctx, await rerender(visit, freshForm(values)));
  const { token, problem } = await verifyFactor(visit, fields);
  if (token === null) {
    ctx.state.code = 'step_up_needed';
    return respond(ctx, await stepUpPage(visit, follows, { fields, problem }));
  }
  await renewSession(ctx, token);
  if (follows === 'open' || follows === 'submitted') return next();
  // A form is sent to the address of its page, which fills it in.
  if (follows === 'opened' || rerender === null) return respond(ctx, redirect(visit.path));
  return respond(ctx, await rerender(ctx.state.visit, freshForm(values)));
};

/** Returns what of a form waits for the second factor, and what follows. */
function describeWaiting(ctx: RouteContext): { fields: URLSearchParams; values: FormValues; follows: AfterStepUp } {
  const { schema } = ctx.state.route;
  const fields = withoutSecrets(schema, ctx.state.form.fields);
  const values = pickValues(schema, fields);
  const withSecret = Object.keys(values).length === 0 ? 'opened' : 'rendered';
  const follows = isCheck(ctx) ? 'open' : hasSecret(schema) ? withSecret : 'submitted';
  return { fields, values, follows };
}

/** Asks for a fresh second factor before a page is rendered. Its form's route verifies it. */
export const askFirst: RouteMiddleware = async (ctx, next) => {
  const visit = ctx.state.visit as PersonVisit;
  return needsStepUp(visit.session, ctx.state.console.now()) ? respond(ctx, await stepUpPage(visit, 'opened')) : next();
};

/** Answers a check that every earlier middleware let pass: the form may be submitted. */
export const respondToCheck: RouteMiddleware = (ctx, next) => {
  if (!isCheck(ctx)) return next();
  ctx.status = 204;
};

/** Returns the session's new token if the form contains a second factor that is accepted. */
async function verifyFactor(
  visit: PersonVisit,
  fields: URLSearchParams,
): Promise<{ token: string | null; problem: string | null }> {
  try {
    const completed = await consumeSecondFactor(visit, (field) => fields.get(field) ?? '');
    return { token: completed?.token ?? null, problem: null };
  } catch (error) {
    const problem = findDomainProblem(error);
    if (problem === null) throw error;
    return { token: null, problem: problem.message };
  }
}

/**
 * Continues with the session's new token. The browser gets it whatever follows, because the old one
 * no longer works.
 */
async function renewSession(ctx: RouteContext, token: string): Promise<void> {
  const { visit, console } = ctx.state;
  setCookie(ctx, 'session', token);
  const session = await findSession(console.database, token, console.now());
  ctx.state.visit = { ...visit, session, sessionToken: token, formToken: formToken(token) };
  if (isCheck(ctx)) ctx.set(formTokenHeader, ctx.state.visit.formToken);
}

/**
 * Returns a function that reports whether the forms of a path may ask for a second factor. They
 * are marked for the script. A path that two routes match is marked for either.
 */
export function createStepUpPaths(routes: readonly Route[]): (path: string) => boolean {
  const paths = routes.filter(({ stepUp }) => stepUp).map(({ path }) => path.replace(/:\w+/g, '[^/]+'));
  const form = new RegExp(`^(?:${paths.join('|')})(?:\\?.*)?$`);
  return (path) => form.test(path);
}
