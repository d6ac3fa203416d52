import type { Middleware, ParameterizedContext } from 'koa';
import { isServerUnavailable, isStatementTimeout } from '#domain/db/driver/errors.ts';
import { BudgetFullError, ClientGoneError } from '#runtime/flow/budget.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import { type Child, html } from '#runtime/pages/html.ts';
import { findRequestFault } from '#runtime/request-faults.ts';
import { layout, problemBody } from '../components/layout.ts';
import { closedNext, closedSentence, unconfirmedNext, unconfirmedSentence } from '../components/unconfirmed.ts';
import { findDomainProblem } from '../web/domain-problems.ts';
import {
  FormError,
  MissingPermissionError,
  NotFoundError,
  PasskeyNeededError,
  ProviderSessionNeededError,
  page,
  RequestError,
  UnconfirmedSignInError,
} from '../web/response.ts';
import type { ConsoleState } from '../web/state.ts';
import { setPolicyOfOwnStyle } from './security-headers.ts';

/**
 * Renders a page for what the middleware after it throw: a rejection, or an internal error, whose
 * cause goes to the log under the id that the page shows.
 */
export const renderProblems =
  (log: Logger, now: () => Date): Middleware<ConsoleState> =>
  (ctx, next) =>
    next().catch((error: unknown) => renderProblem(ctx, error, log, now()));

/** Rejects what is not a valid request of HTTP, also what its parser gave up. */
export const rejectFaults: Middleware<ConsoleState> = (ctx, next) => {
  const fault = findRequestFault(ctx.req);
  if (fault !== null) throw new RequestError(fault.status, fault.message);
  return next();
};

async function renderProblem(
  ctx: ParameterizedContext<ConsoleState>,
  error: unknown,
  log: Logger,
  now: Date,
): Promise<void> {
  if (error instanceof ClientGoneError) return void closeWithoutResponse(ctx);
  const { requestId, operation, visit } = ctx.state;
  const problem = describeProblem(error, now);
  ctx.state.code ??= problem.code;
  if ('cause' in problem)
    log.error({ requestId, operation, code: problem.code, error: describeError(problem.cause) }, 'internal error');
  if (ctx.res.headersSent) return void ctx.res.destroy();
  ctx.status = problem.status;
  if (problem.retryAfterSeconds !== undefined) ctx.set('Retry-After', String(problem.retryAfterSeconds));
  // A body that was not read to its end would be taken for the next request.
  if (problem.status === 413) ctx.set('Connection', 'close');
  ctx.type = 'text/html; charset=utf-8';
  const body = problemBody({
    sentence: problem.sentence,
    next: problem.next,
    isSignedIn: visit?.session?.state === 'full',
    ...('cause' in problem ? { requestId } : {}),
  });
  // The cookies that were too many are sent with the requests for files, too.
  const loadsFiles = problem.status !== 431;
  if (!loadsFiles) await setPolicyOfOwnStyle(ctx, async () => {});
  ctx.body = layout(visit ?? null, page({ title: problem.title, body }), loadsFiles).toString();
}

/** Logs 499, as nginx does, for a browser that left while its page was read. */
function closeWithoutResponse(ctx: ParameterizedContext<ConsoleState>): void {
  ctx.state.code = 'client_gone';
  ctx.status = 499;
  ctx.respond = false;
}

/** By the level of the budget that is used up. */
const busySentences: Record<string, string> & { process: string } = {
  session: 'Too many of your pages are in progress.',
  person: 'Too many of your pages or downloads are in progress.',
  organization: 'Too many pages or downloads of your organization are in progress.',
  process: 'Too many pages or downloads are in progress.',
};

interface Problem {
  status: number;
  code: NonNullable<ConsoleState['code']>;
  title: string;
  sentence: string;
  next: Child;
  /** The cause of an internal error, for the log. */
  cause?: unknown;
  retryAfterSeconds?: number;
}

function describeProblem(error: unknown, now: Date): Problem {
  const problem = findDomainProblem(error);
  if (error instanceof NotFoundError || problem?.isNotFound)
    return {
      status: 404,
      code: 'not_found',
      title: 'Page not found',
      sentence: problem?.message ?? 'This page does not exist, or you do not have access to it.',
      next: 'Check the address. The item may have been deleted.',
    };
  if (error instanceof MissingPermissionError)
    return {
      status: 403,
      code: 'permission_needed',
      title: 'You do not have permission',
      sentence: `This page requires a role with the permission ${error.permission}.`,
      next: 'An owner or administrator can assign one under Members & roles.',
    };
  if (error instanceof UnconfirmedSignInError)
    return {
      status: 403,
      code: 'sign_in_unconfirmed',
      title: 'Your sign-in is not confirmed here',
      sentence: unconfirmedSentence,
      next: unconfirmedNext,
    };
  if (error instanceof PasskeyNeededError)
    return {
      status: 403,
      code: 'passkey_needed',
      title: 'Add a passkey first',
      sentence: 'This organization opens only to members who have a passkey.',
      next: html`Add one under <a href="/account">Your account</a>, then come back.`,
    };
  if (error instanceof ProviderSessionNeededError)
    return {
      status: 403,
      code: 'provider_sign_in_needed',
      title: 'Sign in with your organization',
      sentence: closedSentence,
      next: closedNext,
    };
  if (error instanceof BudgetFullError) return describeExhaustion(error);
  if (error instanceof FormError)
    return {
      status: error.status,
      code: 'form_rejected',
      title: 'Form not accepted',
      sentence: error.message,
      next: error.next ?? 'Open the page in the console and submit the form there.',
    };
  if (problem !== null && problem.retry !== null)
    return {
      status: problem.retry.status,
      code: problem.retry.code,
      sentence: problem.message,
      title: problem.retry.code === 'busy' ? 'Too many sign-ins in progress' : 'Too many attempts',
      next: 'Failed attempts by others do not block a browser that you have signed in with before.',
      retryAfterSeconds: problem.retry.afterSeconds(now),
    };
  if (problem !== null)
    return {
      status: 409,
      code: 'form_rejected',
      title: 'This is not possible',
      sentence: problem.message,
      next: 'Go back and reload the page.',
    };
  return describeFault(error);
}

const describeExhaustion = ({ level }: BudgetFullError): Problem => ({
  status: level === 'process' ? 503 : 429,
  code: level === 'process' ? 'busy' : 'rate_limited',
  title: 'Too many requests in progress',
  sentence: busySentences[level] ?? busySentences.process,
  next: 'Wait until one has finished, then try again.',
  retryAfterSeconds: 5,
});

function describeFault(error: unknown): Problem {
  if (error instanceof RequestError)
    return {
      status: error.status,
      code: error.status === 405 ? 'method_not_allowed' : 'invalid_request',
      title: 'Request not accepted',
      sentence: error.message,
      next:
        error.status === 431
          ? 'Your browser sent too many cookies. Delete the cookies of this site, then reload the page. ' +
            'On localhost, all programs of this machine share them.'
          : 'Open the console in a current browser.',
    };
  if (isServerUnavailable(error) || isStatementTimeout(error))
    return {
      status: 503,
      code: 'unavailable',
      cause: error,
      retryAfterSeconds: 5,
      title: 'Temporarily unavailable',
      sentence: 'Wait a moment, then reload the page.',
      next: 'If you submitted a form, first check whether your change was saved.',
    };
  return {
    status: 500,
    code: 'internal',
    cause: error,
    title: 'Something went wrong',
    sentence: 'The console could not complete the request.',
    next: 'Try again. If the problem continues, contact support.',
  };
}
