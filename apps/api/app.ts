import Koa from 'koa';
import { recordRejectedCallsSql } from '#domain/audit-log/record-requests.ts';
import { failedAuthenticationsPerMinute, requestsPerWindow, requestWindowSeconds } from '#domain/contract/limits.ts';
import { openDatabase } from '#domain/open-database.ts';
import { findSignal } from '#runtime/flow/cancellation.ts';
import { health } from '#runtime/health.ts';
import { securityHeaders } from '#runtime/http-server.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import { limiterKeyPrefix } from '#runtime/redis-window.ts';
import { rejectPooler } from '#runtime/reject-pooler.ts';
import { RejectedCallCounter } from '#runtime/rejected-call-counter.ts';
import { notServing, type RunningApp, serveApp } from '#runtime/serve-app.ts';
import { watchSettings } from '#runtime/settings/watch.ts';
import { openTracing } from '#runtime/tracing.ts';
import { AuditLogWriter } from './audit-log-writer.ts';
import { BodyReader } from './body-reader.ts';
import type { ApiConfig } from './config.ts';
import { servePublicPages } from './docs/public-pages.ts';
import { SmallBodyEncoder } from './encode.ts';
import { endpoints } from './endpoints.ts';
import { rejectFaults, sendErrors } from './error-responses.ts';
import { FailedAuthentications } from './gate.ts';
import { LargeBodySender } from './large-body.ts';
import { Limiter } from './limiter/limiter.ts';
import { createMetrics } from './metrics.ts';
import { ReadRoutes } from './read-routes.ts';
import { logRequests } from './request-log.ts';

/**
 * How long an idle connection is kept on which no known key was sent: one with a row in the database,
 * also when it was revoked or has expired. Otherwise a client could collect error responses that it
 * never reads, and hold a connection with each for minutes.
 */
const unknownKeepAliveSeconds = 15;

/**
 * Opens everything that the API needs, from top to bottom, and serves. `stop` closes in reverse
 * order; it may be called twice.
 */
export async function startApi(config: ApiConfig, log: Logger): Promise<RunningApp> {
  const serving = notServing();
  const isDraining = () => serving.isDraining;
  const { redis } = config;

  const tracing = await openTracing({ otlpEndpoint: config.otlpEndpoint, app: 'api', region: config.region });
  const database = await openDatabase({
    server: () => config.database,
    applicationName: 'org-api',
    poolMax: config.databasePoolMax,
    ...config.databaseTimes,
    findSignal,
  });
  await rejectPooler(database, 'API_DATABASE_URL');
  const { pool } = database;
  const metrics = createMetrics(pool, serving, () => bodyReader);
  const bodyReader = new BodyReader({
    pool,
    tracing,
    onStatement: (count) => metrics.readsPerStatement.observe(count),
    memoryMiB: config.responseMemoryMiB,
    databasePoolMax: config.databasePoolMax,
    readWaitMs: config.readWaitMs,
    onEncoded: (encoding) => metrics.bodiesEncoded.inc({ size: 'large', encoding }),
    onWaited: (end, limit) => metrics.responseWaits.inc({ end, limit }),
  });
  const limiter = new Limiter({
    redis: redis === null ? null : () => config.redis ?? redis,
    limit: requestsPerWindow,
    windowSeconds: requestWindowSeconds,
    keyPrefix: limiterKeyPrefix(config.region),
    onModeChange: (mode, reason) => {
      metrics.limiterMode.set(mode === 'process' ? 1 : 0);
      metrics.limiterSwitches.inc({ mode });
      log.warn(
        { mode, reason },
        mode === 'process' ? 'limiter: Redis is unavailable; this pod limits by itself' : 'limiter: Redis decides',
      );
    },
    onWrongRedis: ({ message }) => log.error(`limiter: this pod limits by itself: ${message}`),
  });
  await limiter.start();
  const settings = watchSettings({ followed: config.followed, registry: metrics.registry, log });
  void settings.start();
  const auditLog = new AuditLogWriter({
    pool,
    onInsert: (entries) => metrics.auditEntriesPerInsert.observe(entries),
    onRejected: (entries) => metrics.auditEntriesRejected.inc(entries),
  });
  const rejectedCalls = new RejectedCallCounter({
    record: (counts) =>
      pool.query({
        name: 'recordRejectedCalls',
        text: recordRejectedCallsSql,
        values: [counts.map(({ fingerprint }) => fingerprint), counts.map(({ count }) => count)],
      }),
    onError: (cause) =>
      log.error(
        { error: describeError(cause) },
        'the counts of rejected calls could not be written; they are kept for the next try',
      ),
  });
  void rejectedCalls.start();

  const app = new Koa();
  app.silent = true;
  app.on('error', (error) => log.error({ error: describeError(error) }, 'a response could not be sent'));
  const largeBodySender = new LargeBodySender();
  const routes = new ReadRoutes({
    endpoints,
    pool,
    largeBodySender,
    smallBodyEncoder: new SmallBodyEncoder((encoding) => metrics.bodiesEncoded.inc({ size: 'small', encoding })),
    bodyReader,
    readWaitMs: config.readWaitMs,
    limiter,
    auditLog,
    rejectedCalls,
    failedAuthentications: new FailedAuthentications({ perMinute: failedAuthenticationsPerMinute }),
    keys: config.keys,
    baseUrls: config.baseUrls,
    trustedProxies: config.trustedProxies,
    tracing,
  });
  app.use(logRequests({ log, metrics, tracing, isDraining }));
  app.use(sendErrors(log));
  app.use(rejectFaults);
  app.use(routes.handle);
  app.use(health({ pool, isDraining }));
  app.use(servePublicPages(config, largeBodySender));
  app.use(routes.rejectOther);

  return serveApp(serving, {
    name: 'the API',
    handler: app.callback(),
    handlesFaults: true,
    headers: securityHeaders,
    config,
    unknownKeepAliveSeconds,
    metrics,
    log,
    async close() {
      await rejectedCalls.stop();
      await settings.stop();
      await limiter.stop();
      await database.close();
      await tracing.stop();
    },
  });
}
