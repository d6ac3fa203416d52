import type { Middleware } from 'koa';
import { ApiError, apiError } from '#domain/contract/errors.ts';
import { isServerUnavailable, isStatementTimeout } from '#domain/db/driver/errors.ts';
import { BudgetFullError, ClientGoneError } from '#runtime/flow/budget.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import { findRequestFault } from '#runtime/request-faults.ts';
import type { RequestContext, RequestState } from './request-log.ts';

/** Seconds to wait after 503 for a budget: as long as a read may wait for all. Every other 503 says 1. */
const retryAfterExhaustionSeconds = 5;

/**
 * Answers every error of the middleware below: `{error, message}`, and for an error of the service
 * the request's id, under which the log has the cause.
 */
export function sendErrors(log: Logger): Middleware<RequestState> {
  return (ctx, next) => next().catch((error: unknown) => sendError(ctx, error, log));
}

function sendError(ctx: RequestContext, cause: unknown, log: Logger): void {
  if (cause instanceof ClientGoneError) {
    closeWithoutResponse(ctx);
    return;
  }
  const isExhausted = cause instanceof BudgetFullError;
  const isUnavailable = isExhausted || isServerUnavailable(cause) || isStatementTimeout(cause);
  const error = cause instanceof ApiError ? cause : apiError(isUnavailable ? 'unavailable' : 'internal', null, cause);
  const { code, status, message } = error;
  const { requestId, operation } = ctx.state;
  const isInternal = status >= 500;
  if (isInternal) log.error({ requestId, operation, code, error: describeError(error.cause) }, 'internal error');
  if (status === 401) ctx.set('WWW-Authenticate', 'Bearer');
  if (code === 'unavailable') ctx.set('Retry-After', String(isExhausted ? retryAfterExhaustionSeconds : 1));
  ctx.state.code = code;
  ctx.status = status;
  ctx.set('Content-Type', 'application/json');
  ctx.body = JSON.stringify({ error: code, message, ...(isInternal ? { requestId } : {}) });
}

/** Logs 499, as nginx does, for a client that disconnected while its request waited. */
function closeWithoutResponse(ctx: RequestContext): void {
  ctx.state.code = 'client_gone';
  ctx.status = 499;
  ctx.respond = false;
}

/** Rejects what is not a valid request of HTTP, also what its parser gave up. */
export const rejectFaults: Middleware<RequestState> = (ctx, next) => {
  const fault = findRequestFault(ctx.req);
  if (fault !== null) throw new ApiError('invalid_request', fault.message, { status: fault.status });
  return next();
};
