import { bodyParser } from '@koa/bodyparser';
import { sql } from 'kysely';
import { html, nothing } from '#runtime/pages/html.ts';
import { formIdField, formTokenField } from '../components/form.ts';
import { findDomainProblem, findProblemField } from '../web/domain-problems.ts';
import { collectProblems, type FormState, freshForm, pickValues } from '../web/form.ts';
import { FormError, page } from '../web/response.ts';
import type { FormCode, RouteContext, RouteMiddleware } from '../web/state.ts';
import type { PersonVisit } from '../web/visit.ts';
import { isFormToken, isSameOrigin } from './csrf.ts';
import { respond } from './respond.ts';
import { identifyCaller } from './session.ts';

/**
 * The checks of a form before it is carried out, in the order of `pipeline.ts`. Input is never
 * lost: every error after the origin and the body renders the form again with it.
 */

/** @throws FormError when a form does not come from a page of the console. */
export const requireSameOrigin: RouteMiddleware = (ctx, next) => {
  if (isSameOrigin(ctx.headers, ctx.state.console.origin)) return next();
  ctx.state.code = 'form_of_another_site';
  // A page that was opened at another address, such as 127.0.0.1, can submit no form.
  const { origin } = ctx.state.console;
  const where = html`Open the console at <a href="${origin}">${origin}</a>, and submit the form there.`;
  throw new FormError(403, 'This form came from another address than the console’s. Nothing was changed.', where);
};

/** The largest form contains a description and a passkey's response. */
const readBody = bodyParser({
  enableTypes: ['form'],
  formLimit: '64kb',
  onError: (error) => {
    throw (error as { status?: number }).status === 413
      ? new FormError(413, 'This form is too large. Enter less text.')
      : error;
  },
});

/**
 * Reads a form as browsers send it: at most 64 KiB, not compressed. `URLSearchParams` reads the
 * fields from the raw text, because the parser's `qs` makes objects of names with brackets.
 *
 * @throws FormError when it is larger, no form, or a field contains NUL, which PostgreSQL's text
 * cannot.
 */
export const parseForm: RouteMiddleware = async (ctx, next) => {
  const isForm = ctx.is('application/x-www-form-urlencoded') && ctx.get('Content-Encoding') === '';
  if (!isForm) throw new FormError(415, 'The console accepts form data only.');
  await readBody(ctx, async () => {});
  const fields = new URLSearchParams(ctx.request.rawBody);
  if ([...fields.values()].some((value) => value.includes('\0')))
    throw new FormError(422, 'A field contains characters that are not allowed. Nothing was changed.');
  ctx.state.form = { fields, values: pickValues(ctx.state.route.schema, fields), input: {} };
  await next();
};

/** Lets the route reject a form before any I/O. */
export const rejectEarly: RouteMiddleware = (ctx, next) => {
  const { route, console, form } = ctx.state;
  route.admit?.(console, identifyCaller(ctx), form.fields);
  return next();
};

/** Renders a form again that lacks the token of its session. */
export const requireFormToken: RouteMiddleware = (ctx, next) => {
  const { form, visit } = ctx.state;
  if (isFormToken(form.fields.get(formTokenField), visit.formToken)) return next();
  return rerender(ctx, 'form_out_of_date', {
    problem: 'This page was out of date, so nothing was changed. Check your input and submit again.',
  });
};

/** Renders a form again whose fields do not match the route's schema. */
export const validateForm: RouteMiddleware = (ctx, next) => {
  const { route, form } = ctx.state;
  const read = route.schema.safeParse(form.values);
  if (!read.success) return rerender(ctx, 'form_rejected', collectProblems(read.error));
  form.input = read.data;
  return next();
};

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Rejects a form whose rendering was submitted before. */
export const requireFirstUse: RouteMiddleware = async (ctx, next) => {
  const { console, form } = ctx.state;
  const visit = ctx.state.visit as PersonVisit;
  const { again } = ctx.state.route;
  const formId = form.fields.get(formIdField) ?? '';
  if (uuidForm.test(formId)) {
    // One row the first time; of two at once, also on different pods, only one is first.
    const used = await console.database.query(sql`
      insert into form_use (session_id, form_id) values (${visit.session.id}, ${formId})
      on conflict do nothing returning form_id`);
    if (used.length === 1) return next();
  }
  ctx.state.code = 'form_sent_twice';
  const up = visit.path.slice(0, visit.path.lastIndexOf('/')) || '/';
  return respond(
    ctx,
    page({
      title: 'Already submitted',
      status: 409,
      body: html`<p>This form was submitted before. <a href="${up}">See the result</a>. If your change is missing,
        submit a new form.</p>${again === null ? nothing : await again(visit)}`,
    }),
  );
};

/** Carries a form out. An error of the domain renders the form again with its sentence. */
export const submitForm: RouteMiddleware = async (ctx) => {
  const { route, visit, form, console } = ctx.state;
  const outcome = await route.run(visit, form.input).catch((error: unknown) => {
    const problem = findDomainProblem(error);
    if (problem === null) throw error;
    return problem;
  });
  if (!('isNotFound' in outcome)) return respond(ctx, outcome);
  // If what the path names does not exist, rendering it again throws the same error, which
  // becomes a 404.
  const { retry, message } = outcome;
  const field = findProblemField(outcome, route.schema.shape);
  const state = field === null ? { problem: message } : { problems: { [field]: message } };
  await rerender(ctx, retry?.code ?? 'form_rejected', state);
  if (retry === null) return;
  ctx.status = retry.status;
  ctx.set('Retry-After', String(retry.afterSeconds(console.now())));
};

/** Renders the form again with what was typed and what is wrong. */
async function rerender(ctx: RouteContext, code: FormCode, state: Partial<FormState>): Promise<void> {
  const { route, visit, form } = ctx.state;
  ctx.state.code = code;
  if (route.rerender === null) throw new Error(`the route ${route.name} has no form to render again`);
  const rendered = await route.rerender(visit, { ...freshForm(form.values), ...state });
  await respond(ctx, rendered.status === 200 ? { ...rendered, status: 422 } : rendered);
}
