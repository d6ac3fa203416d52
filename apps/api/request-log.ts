import { randomUUIDv7 } from 'node:crypto';
import type { Middleware, ParameterizedContext } from 'koa';
import type { Logger } from '#runtime/log.ts';
import type { Tracing } from '#runtime/tracing.ts';
import type { Metrics } from './metrics.ts';

/** What the log line of every request shows. `requestId` is also the id of its audit entry. */
export interface RequestState {
  requestId: string;
  operation: string;
  organizationId?: string;
  keyId?: string;
  code?: string;
  limitLeft?: number;
}

export type RequestContext = ParameterizedContext<RequestState>;

/** Gives every request an id, and reports it once to log, metrics and traces. */
export function logRequests(dependencies: {
  log: Logger;
  metrics: Metrics;
  tracing: Tracing;
  isDraining: () => boolean;
}): Middleware<RequestState> {
  const { log, metrics, tracing, isDraining } = dependencies;

  return async (ctx, next) => {
    const startedAt = performance.now();
    const state = ctx.state;
    state.requestId = randomUUIDv7();
    state.operation = 'none';
    ctx.set('Request-Id', state.requestId);
    await tracing.request('request', async (span) => {
      await next();
      span?.setAttributes({
        'org_api.operation': state.operation,
        'org_api.request_id': state.requestId,
        'http.response.status_code': ctx.status,
      });
    });
    // Checked after the response, because a request may have begun before the drain.
    if (isDraining()) ctx.set('Connection', 'close');
    const durationMs = Math.round((performance.now() - startedAt) * 100) / 100;
    const { method, status } = ctx;
    metrics.requests.observe(state.operation, status, durationMs / 1000);
    if (status === 401) metrics.failedAuthentications.inc();
    const { requestId, operation, organizationId, keyId, code, limitLeft } = state;
    const line = { requestId, method, operation, status, code, organizationId, keyId, limitLeft, durationMs };
    log.info(line, 'request');
  };
}
