import { randomUUIDv7 } from 'node:crypto';
import type { Middleware } from 'koa';
import type { Logger } from '#runtime/log.ts';
import type { Metrics } from '../web/metrics.ts';
import type { ConsoleState } from '../web/state.ts';

/**
 * Gives every request an id, and notes it once in log and metrics. A line holds ids and the route's
 * name, never the path as sent (it may hold a token), a name, an address of a person or a field.
 */
export function logRequests(dependencies: {
  log: Logger;
  metrics: Metrics;
  isDraining: () => boolean;
}): Middleware<ConsoleState> {
  const { log, metrics, isDraining } = dependencies;

  return async (ctx, next) => {
    const startedAt = performance.now();
    const { state } = ctx;
    state.requestId = randomUUIDv7();
    state.operation = 'none';
    ctx.set('Request-Id', state.requestId);
    await next();
    if (isDraining() && !ctx.res.headersSent) ctx.set('Connection', 'close');
    const durationMs = Math.round((performance.now() - startedAt) * 100) / 100;
    const { method, status } = ctx;
    const { requestId, operation, organizationId, personId, code } = state;
    metrics.observe(operation, method, status, code, durationMs / 1000);
    log.info({ requestId, method, operation, status, code, organizationId, personId, durationMs }, 'request');
  };
}
