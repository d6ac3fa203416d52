import type { ParameterizedContext } from 'koa';
import type { z } from 'zod';
import { findSession, needsStepUp } from '#domain/identity/sessions.ts';
import { formIdField, formTokenField } from '../components/form.ts';
import { type Answer, FormRefused, type Page, page, redirect } from './answer.ts';
import { readForm } from './body.ts';
import { setCookie } from './cookies.ts';
import { formToken, isFormToken, isSameOrigin } from './forgery.ts';
import { type FormState, freshForm, hasSecret, problemsOf, valuesOf } from './form.ts';
import { recordFormUse } from './form-use.ts';
import { html } from './html.ts';
import { refusalOf } from './refusals.ts';
import type { Route } from './route.ts';
import type { ConsoleState, FormCode } from './state.ts';
import { takeStepUp } from './step-up.ts';
import type { PersonVisit, Visit } from './visit.ts';

type Ctx = ParameterizedContext<ConsoleState>;

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Carries out a form, unless there is a reason not to; these are asked in order: does it come from
 * us, does it carry its session's token, do its fields make sense, is the second factor fresh where
 * it must be, is this its first use where that matters. What was typed is never lost: every refusal
 * after the first draws the form again with it. A form with a password is the exception: its second
 * factor is asked for before its fields, and it is filled in after that, so that no page ever holds
 * one.
 *
 * @throws FormRefused when it does not come from us.
 */
export async function takeForm(ctx: Ctx, route: Route, visit: Visit): Promise<Answer> {
  assertSameOrigin(ctx, visit.console.origin);
  const sent = ctx.state.form ?? (await readForm(ctx.req));
  const values = valuesOf(route.schema, sent);
  const drawAgain = (on: Visit, code: FormCode, state: Partial<FormState>) => {
    ctx.state.code = code;
    return draw(route, on, { ...freshForm(values), ...state });
  };
  if (!isFormToken(sent.get(formTokenField), visit.formToken))
    return drawAgain(visit, 'form_out_of_date', {
      problem: 'This page was out of date, so nothing was done. Look at it once more and send it again.',
    });
  const isStale = route.stepUp && needsStepUp((visit as PersonVisit).session, visit.console.now());
  if (isStale && hasSecret(route.schema)) {
    const fresh = await stepUp(ctx, visit as PersonVisit, sent, { carries: false });
    // A form is sent to the address of its page.
    return 'asked' in fresh ? fresh.asked : redirect(visit.path);
  }
  const read = route.schema.safeParse(values);
  if (!read.success) return drawAgain(visit, 'form_refused', problemsOf(read.error));
  if (!isStale) return carryOut(ctx, route, visit, sent, read.data, drawAgain);
  const fresh = await stepUp(ctx, visit as PersonVisit, sent, { carries: true });
  return 'asked' in fresh ? fresh.asked : carryOut(ctx, route, fresh.visit, sent, read.data, drawAgain);
}

/** @throws FormRefused when a form does not come from a page of `origin`. */
export function assertSameOrigin(ctx: Ctx, origin: string): void {
  if (isSameOrigin(ctx.headers, origin)) return;
  ctx.state.code = 'form_of_another_site';
  throw new FormRefused(403, 'This form was not sent from a page of the console, so nothing was done.');
}

/**
 * The second factor again: the page that asks for it, which `carries` the form along or not; or the
 * visit once it was given.
 */
async function stepUp(
  ctx: Ctx,
  visit: PersonVisit,
  sent: URLSearchParams,
  { carries }: { carries: boolean },
): Promise<{ asked: Page } | { visit: Visit }> {
  const outcome = await takeStepUp(visit, sent, carries);
  if (outcome.kind === 'asked') {
    ctx.state.code = 'step_up_needed';
    return { asked: outcome.page };
  }
  // At once, whatever comes now: the token that the browser has is dead.
  setCookie(ctx, visit.console.origin, 'session', outcome.token);
  const fresh = await renewed(visit, outcome.token);
  ctx.state.visit = fresh;
  return { visit: fresh };
}

async function carryOut(
  ctx: Ctx,
  route: Route,
  visit: Visit,
  sent: URLSearchParams,
  input: z.output<z.ZodObject>,
  drawAgain: (on: Visit, code: FormCode, state: Partial<FormState>) => Promise<Page>,
): Promise<Answer> {
  if (route.once && !(await isFirstUse(visit as PersonVisit, sent))) {
    ctx.state.code = 'form_sent_twice';
    return sentTwice(visit);
  }
  try {
    return await route.run(visit, input);
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal === null) throw error;
    // Where what the address names is not there, drawing the form throws the same again, and it
    // becomes a 404.
    const { retry, message } = refusal;
    const drawn = await drawAgain(visit, retry?.code ?? 'form_refused', { problem: message });
    if (retry === null) return drawn;
    ctx.set('Retry-After', String(retry.afterSeconds(visit.console.now())));
    return { ...drawn, status: retry.status };
  }
}

async function draw(route: Route, visit: Visit, state: FormState): Promise<Page> {
  if (route.redraw === null) throw new Error(`the route ${route.name} has no form to draw again`);
  const drawn = await route.redraw(visit, state);
  return drawn.status === 200 ? { ...drawn, status: 422 } : drawn;
}

async function isFirstUse(visit: PersonVisit, sent: URLSearchParams): Promise<boolean> {
  const formId = sent.get(formIdField) ?? '';
  return uuidForm.test(formId) && (await recordFormUse(visit.console.pool, visit.session.id, formId));
}

/** The same visit with the session as it is after its second factor was given. */
async function renewed(visit: Visit, token: string): Promise<Visit> {
  const session = await findSession(visit.console.em.fork(), token, visit.console.now());
  return { ...visit, session, sessionToken: token, formToken: formToken(token) };
}

/** Says so, and nothing more: the answer to the first is what its person was to see. */
function sentTwice(visit: Visit): Page {
  const up = visit.path.slice(0, visit.path.lastIndexOf('/')) || '/';
  return page({
    title: 'This was sent already',
    status: 409,
    body: html`<p>The form came twice, and was carried out once at most. <a href="${up}">See what there is now</a>; if what you wanted is not there, fill in a new form.</p>`,
  });
}
