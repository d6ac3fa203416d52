import type { Middleware, ParameterizedContext } from 'koa';
import { BudgetExhausted } from '#runtime/budget.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import { layout, problemBody } from '../components/layout.ts';
import { unconfirmedNext, unconfirmedSentence } from '../components/unconfirmed.ts';
import { FormRefused, NotFound, PermissionNeeded, page, SignInUnconfirmed } from './answer.ts';
import { refusalOf } from './refusals.ts';
import type { ConsoleState } from './state.ts';

/**
 * Draws a page for what the middleware after it throw: a refusal, or an internal error, whose cause
 * goes to the log under the id that the page shows.
 */
export const drawProblems =
  (log: Logger, now: () => Date): Middleware<ConsoleState> =>
  (ctx, next) =>
    next().catch((error: unknown) => drawProblem(ctx, error, log, now()));

function drawProblem(ctx: ParameterizedContext<ConsoleState>, error: unknown, log: Logger, now: Date): void {
  const { requestId, operation, visit } = ctx.state;
  const problem = problemOf(error, now);
  ctx.state.code ??= problem.code;
  if ('cause' in problem)
    log.error({ requestId, operation, code: problem.code, error: describeError(problem.cause) }, 'fault');
  if (ctx.res.headersSent) return void ctx.res.destroy();
  ctx.status = problem.status;
  if (problem.retryAfterSeconds !== undefined) ctx.set('Retry-After', String(problem.retryAfterSeconds));
  // A body that was not read to its end would be taken for the next request.
  if (problem.status === 413) ctx.set('Connection', 'close');
  ctx.type = 'text/html; charset=utf-8';
  const body = problemBody({
    sentence: problem.sentence,
    next: problem.next,
    ...('cause' in problem ? { requestId } : {}),
  });
  ctx.body = layout(visit ?? null, page({ title: problem.title, body })).toString();
}

interface Problem {
  status: number;
  code: NonNullable<ConsoleState['code']>;
  title: string;
  sentence: string;
  next: string;
  /** Of a fault, for the log. */
  cause?: unknown;
  retryAfterSeconds?: number;
}

function problemOf(error: unknown, now: Date): Problem {
  const refusal = refusalOf(error);
  if (error instanceof NotFound || refusal?.isNotThere)
    return {
      status: 404,
      code: 'not_found',
      title: 'Nothing here',
      sentence: refusal?.message ?? 'There is nothing at this address, or nothing that you may see.',
      next: 'The address may be mistyped, or what it led to is gone.',
    };
  if (error instanceof PermissionNeeded)
    return {
      status: 403,
      code: 'permission_needed',
      title: 'Your roles do not allow this',
      sentence: `This page needs a role that holds ${error.permission}.`,
      next: 'An owner or administrator of the organization can give you one, under Members & roles.',
    };
  if (error instanceof SignInUnconfirmed)
    return {
      status: 403,
      code: 'sign_in_unconfirmed',
      title: 'Your sign-in is not confirmed here',
      sentence: unconfirmedSentence,
      next: unconfirmedNext,
    };
  if (error instanceof BudgetExhausted)
    return {
      status: error.level === 'pod' ? 503 : 429,
      code: 'rate_limited',
      title: 'Too many downloads',
      sentence: 'As many downloads are in progress as there can be at a time.',
      next: 'Wait until one has finished, then start this one again.',
      retryAfterSeconds: 5,
    };
  if (error instanceof FormRefused)
    return {
      status: error.status,
      code: 'form_refused',
      title: 'Nothing was done',
      sentence: error.message,
      next: 'Open the page in the console and send its form from there.',
    };
  if (refusal !== null && refusal.retry !== null)
    return {
      status: refusal.retry.status,
      code: refusal.retry.code,
      sentence: refusal.message,
      title: refusal.retry.code === 'busy' ? 'Busy right now' : 'Too many attempts',
      next: 'A browser that you have signed in with before is not affected by the failures of others.',
      retryAfterSeconds: refusal.retry.afterSeconds(now),
    };
  if (refusal !== null)
    return {
      status: 409,
      code: 'form_refused',
      title: 'That is not possible',
      sentence: refusal.message,
      next: 'Go back and look at the page again.',
    };
  return faultOf(error);
}

function faultOf(error: unknown): Problem {
  if (isAway(error))
    return {
      status: 503,
      code: 'unavailable',
      cause: error,
      retryAfterSeconds: 5,
      title: 'Not available right now',
      sentence: 'The console cannot reach its data right now.',
      next: 'Try again in a moment.',
    };
  return {
    status: 500,
    code: 'internal',
    cause: error,
    title: 'Something went wrong on our side',
    sentence: 'The console could not do this.',
    next: 'Try again. If it stays so, ask for help.',
  };
}

/**
 * SQLSTATE classes and system errors that mean the database is away, full or stopping, rather than
 * that a statement of ours is wrong.
 */
const away = /^(?:08|53|57|58)...$|^E[A-Z]{3,}$/;

/**
 * What `pg` says, without a code, when no connection was free, none could be made, or one was lost
 * or silent in the middle of a statement.
 */
const lost =
  /^(?:timeout exceeded when trying to connect|timeout expired|Query read timeout|Connection terminated.*|Client (?:was closed|has encountered a connection error) and is not queryable)$/;

function isAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  return (typeof code === 'string' ? away.test(code) : lost.test(error.message)) || isAway(error.cause);
}
