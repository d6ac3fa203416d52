import { randomUUIDv7 } from 'node:crypto';
import type { Middleware, ParameterizedContext } from 'koa';
import { ApiError, errorStatus } from '#domain/contract/errors.ts';
import { BudgetExhausted, ClientGone } from '#runtime/budget.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import type { Tracing } from '#runtime/tracing.ts';
import type { Metrics } from './metrics.ts';
import type { ReadState } from './read-state.ts';

/**
 * Around every request: gives it an id, turns a refusal into `{error, message}` and a fault into a
 * 500 with constant text, and tells logs, metrics and traces about it once. Nothing else in the app
 * does any of these.
 */
export function answers(deps: {
  log: Logger;
  metrics: Metrics;
  tracing: Tracing;
  isDraining: () => boolean;
}): Middleware<ReadState> {
  const { log, metrics, tracing, isDraining } = deps;

  return async (ctx, next) => {
    const startedAt = performance.now();
    const state = ctx.state;
    state.requestId = randomUUIDv7();
    state.operation = 'none';
    ctx.set('Request-Id', state.requestId);
    await tracing.request('request', async (span) => {
      await next().catch((error: unknown) => refuse(ctx, error, log));
      span?.setAttributes({
        'org_api.operation': state.operation,
        'org_api.request_id': state.requestId,
        'http.response.status_code': ctx.status,
      });
    });
    // Asked now, not at the start: the connection of a request that was under way when the drain
    // began would be kept, and hold up the stop.
    if (isDraining()) ctx.set('Connection', 'close');
    const durationMs = performance.now() - startedAt;
    metrics.observeRequest(state.operation, ctx.status, durationMs / 1000);
    if (ctx.status === 401) metrics.failedAuthentications.inc();
    const { requestId, operation, organizationId, keyId, code, limitLeft } = state;
    const line = {
      requestId,
      method: ctx.method,
      operation,
      status: ctx.status,
      code,
      organizationId,
      keyId,
      limitLeft,
    };
    log.info({ ...line, durationMs: Math.round(durationMs * 100) / 100 }, 'request');
  };
}

/**
 * Seconds to wait when no memory came free: by then, the connections of unread answers are being
 * cut.
 */
const afterExhaustionSeconds = 5;

/**
 * The one place where a refusal or a fault becomes an answer. A fault's cause goes to the log,
 * under the id that the client is shown.
 */
function refuse(ctx: ParameterizedContext<ReadState>, error: unknown, log: Logger): void {
  if (error instanceof ClientGone) return void refuseNobody(ctx);
  const refusal = refusalOf(error);
  const { requestId, operation } = ctx.state;
  const isFault = errorStatus[refusal.code] >= 500;
  if (isFault) log.error({ requestId, operation, code: refusal.code, error: describeError(refusal.cause) }, 'fault');
  if (refusal.code === 'unavailable')
    ctx.set('Retry-After', String(error instanceof BudgetExhausted ? afterExhaustionSeconds : 1));
  ctx.state.code = refusal.code;
  ctx.status = refusal.status;
  ctx.set('Content-Type', 'application/json');
  ctx.body = JSON.stringify({ error: refusal.code, message: refusal.message, ...(isFault ? { requestId } : {}) });
}

function refusalOf(cause: unknown): ApiError {
  if (cause instanceof ApiError) return cause;
  return cause instanceof BudgetExhausted
    ? new ApiError('unavailable', 'The service cannot answer right now. Try again in a moment.', { cause })
    : new ApiError('internal', 'Something went wrong on our side.', { cause });
}

/**
 * A client that went away while its request waited gets no answer; logs and metrics have 499 for
 * it, as nginx has.
 */
function refuseNobody(ctx: ParameterizedContext<ReadState>): void {
  ctx.state.code = 'client_gone';
  ctx.status = 499;
  ctx.respond = false;
}
