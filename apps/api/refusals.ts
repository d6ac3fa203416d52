import type { Middleware } from 'koa';
import { ApiError, errorStatus } from '#domain/contract/errors.ts';
import { type Region, regions } from '#domain/contract/regions.ts';
import type { Scope } from '#domain/contract/scopes.ts';
import type { Decision } from '#domain/db/statements/authorized.ts';
import type { KeyCheck } from '#domain/keys/format.ts';
import { BudgetExhausted, ClientGone } from '#runtime/budget.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import { findRequestFault } from '#runtime/request-faults.ts';
import type { RequestContext, RequestState } from './state.ts';

/** Seconds to wait after 503 for memory. By then, connections with unread answers are cut. */
const retryAfterExhaustionSeconds = 5;

/**
 * Answers every refusal and every internal error of the middleware below: `{error, message}`, and
 * for an internal error the request's id, under which the log has the cause.
 */
export function sendRefusals(log: Logger): Middleware<RequestState> {
  return (ctx, next) => next().catch((error: unknown) => sendRefusal(ctx, error, log));
}

function sendRefusal(ctx: RequestContext, error: unknown, log: Logger): void {
  if (error instanceof ClientGone) {
    closeWithoutAnswer(ctx);
    return;
  }
  const refusal = refusalOf(error);
  const { requestId, operation } = ctx.state;
  const isInternal = errorStatus[refusal.code] >= 500;
  if (isInternal)
    log.error({ requestId, operation, code: refusal.code, error: describeError(refusal.cause) }, 'internal error');
  if (refusal.code === 'unavailable')
    ctx.set('Retry-After', String(error instanceof BudgetExhausted ? retryAfterExhaustionSeconds : 1));
  ctx.state.code = refusal.code;
  ctx.status = refusal.status;
  ctx.set('Content-Type', 'application/json');
  const body = { error: refusal.code, message: refusal.message };
  ctx.body = JSON.stringify(isInternal ? { ...body, requestId } : body);
}

function refusalOf(cause: unknown): ApiError {
  if (cause instanceof ApiError) return cause;
  return cause instanceof BudgetExhausted
    ? new ApiError('unavailable', 'The service cannot answer right now. Try again in a moment.', { cause })
    : new ApiError('internal', 'An internal error occurred.', { cause });
}

/** Logs 499, as nginx does, for a client that disconnected while its request waited. */
function closeWithoutAnswer(ctx: RequestContext): void {
  ctx.state.code = 'client_gone';
  ctx.status = 499;
  ctx.respond = false;
}

/** Refuses what is not a valid request of HTTP, also what its parser gave up. */
export const refuseFaults: Middleware<RequestState> = (ctx, next) => {
  const fault = findRequestFault(ctx.req);
  if (fault !== null) throw new ApiError('invalid_request', fault.message, { status: fault.status });
  return next();
};

/**
 * Returns the refusal for each decision of a read's statement but `ok`.
 *
 * @param malformation - what is wrong with the request, for the decision `malformed`.
 */
export function refusalOfDecision(decision: Exclude<Decision, 'ok'>, scope: Scope, malformation: string): ApiError {
  switch (decision) {
    case 'revoked':
      return new ApiError('invalid_api_key', 'This API key was revoked.');
    case 'expired':
      return new ApiError('invalid_api_key', 'This API key has expired.');
    case 'malformed':
      return new ApiError('invalid_request', malformation);
    case 'scope_missing':
      return new ApiError(
        'insufficient_scope',
        `This API key does not carry the scope ${scope}, which this read needs.`,
      );
    case 'no_organization':
      return new ApiError('not_found', 'There is no organization with this id.');
    case 'other_organization':
      return new ApiError('forbidden', 'This API key belongs to another organization.');
    case 'maker_left':
      return new ApiError(
        'forbidden',
        'The person who created this API key has left the organization. Create a new key; this one stays inactive.',
      );
    case 'maker_inactive':
      return new ApiError(
        'forbidden',
        'The person who created this API key is no longer an active member of the organization.',
      );
    case 'maker_not_permitted':
      return new ApiError(
        'forbidden',
        `The person who created this API key no longer holds ${scope} in the organization.`,
      );
  }
}

/**
 * Returns the refusal of a text that is not a key of this region, with the URL of the right region.
 */
export function refusalOfBearer(check: Exclude<KeyCheck, { ok: true }>, baseUrls: Record<Region, string>): ApiError {
  if (check.reason === 'malformed') return new ApiError('invalid_api_key', 'This is not a valid API key.');
  const { name } = regions[check.region];
  return new ApiError('invalid_api_key', `This API key is for ${name}; send it to ${baseUrls[check.region]}.`);
}

/** Returns the refusal of a request that is not a read: an unknown path, or another method. */
export function refusalOfOther(isKnownPath: boolean, hasKey: boolean): ApiError {
  if (!isKnownPath) return new ApiError('not_found', 'There is nothing at this path.');
  return hasKey
    ? new ApiError('api_key_not_accepted', 'API keys open the GET requests of the organization API and nothing else.')
    : new ApiError('method_not_allowed', 'Only GET is possible here.');
}
