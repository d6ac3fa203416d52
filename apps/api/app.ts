import Koa from 'koa';
import { failedAuthenticationsPerMinute, requestsPerWindow, requestWindowSeconds } from '#domain/contract/limits.ts';
import { openDatabase } from '#domain/db/connect.ts';
import { currentMigration } from '#domain/db/migrations/index.ts';
import { recordRefusalsSql } from '#domain/db/statements/activity.ts';
import { isTrustedPeer } from '#runtime/address.ts';
import { health } from '#runtime/health.ts';
import { type RunningServer, type ServerBounds, startServer } from '#runtime/http-server.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import { serveMetrics } from '#runtime/metrics-page.ts';
import { createRefusalCounter } from '#runtime/refusal-counter.ts';
import { securityHeaders } from '#runtime/security-headers.ts';
import { watchSettings } from '#runtime/settings/watch.ts';
import { openTracing } from '#runtime/tracing.ts';
import { createActivityWriter } from './activity-writer.ts';
import { createAnswerMemory } from './answer-memory.ts';
import type { ApiConfig } from './config.ts';
import { endpoints } from './endpoints/index.ts';
import { createFailedAuthentications } from './failed-authentications.ts';
import { createLimiter } from './limiter/limiter.ts';
import { createMetrics } from './metrics.ts';
import { createReads } from './pipeline.ts';
import { servePublicPages } from './public-pages.ts';
import { sendRefusals } from './refusals.ts';
import { logRequests } from './request-log.ts';

/**
 * How long an idle connection is kept on which no key was accepted. Without this, a client could
 * collect refusals that it never reads, and hold a connection with each for minutes.
 */
const unknownKeepAliveSeconds = 15;

/** A running API: where it answers, and how to stop it without losing a request. */
export interface RunningApi {
  url: string;
  metricsUrl: string;
  stop(): Promise<void>;
}

/**
 * Opens everything the API needs, top to bottom, and serves. `stop` closes in reverse order; it may
 * be called twice.
 */
export async function startApi(config: ApiConfig, log: Logger): Promise<RunningApi> {
  let draining = false;
  let server: RunningServer | null = null;
  const isDraining = () => draining;

  const tracing = await openTracing({ otlpEndpoint: config.otlpEndpoint, app: 'api', region: config.region });
  const database = await openDatabase({
    url: () => config.databaseUrl,
    applicationName: 'org-api',
    poolMax: config.databasePoolMax,
  });
  const { pool } = database;
  const metrics = createMetrics(pool, { memory: () => memory, server: () => server });
  const memory = createAnswerMemory({
    memoryMiB: config.answerMemoryMiB,
    databasePoolMax: config.databasePoolMax,
    onWaited: (end, limit) => metrics.answerWaits.inc({ end, limit }),
  });
  const limiter = createLimiter({
    redisUrl: config.redisUrl === null ? null : () => config.redisUrl ?? '',
    limit: requestsPerWindow,
    windowSeconds: requestWindowSeconds,
    keyPrefix: `limit:${config.region}:`,
    onModeChange: (mode, reason) => {
      metrics.limiterMode.set(mode === 'pod' ? 1 : 0);
      metrics.limiterSwitches.inc({ mode });
      log.warn(
        { mode, reason },
        mode === 'pod' ? 'limiter: Redis is away; this pod limits by itself' : 'limiter: Redis decides',
      );
    },
  });
  await limiter.start();
  const settings = watchSettings({ followed: config.followed, registry: metrics.registry, log });
  settings.start();
  const activity = createActivityWriter({
    pool,
    onInsert: (lines) => metrics.activityLines.observe(lines),
    onRefused: (lines) => metrics.activityRefused.inc(lines),
  });
  const refusals = createRefusalCounter({
    record: (counts) =>
      pool.query({
        name: 'recordRefusals',
        text: recordRefusalsSql,
        values: [counts.map(({ fingerprint }) => fingerprint), counts.map(({ refused }) => refused)],
      }),
    onError: (cause) =>
      log.error(
        { error: describeError(cause) },
        'the counts of refused calls could not be written; they are kept for the next try',
      ),
  });
  void refusals.start();

  const app = new Koa();
  app.silent = true;
  app.on('error', (error) => log.error({ error: describeError(error) }, 'an answer could not be sent'));
  const reads = createReads({
    endpoints,
    pool,
    limiter,
    activity,
    memory,
    refusals,
    failedAuthentications: createFailedAuthentications({ perMinute: failedAuthenticationsPerMinute }),
    keys: config.keys,
    baseUrls: config.baseUrls,
    trustedProxies: config.trustedProxies,
    tracing,
  });
  app.use(logRequests({ log, metrics, tracing, isDraining }));
  app.use(sendRefusals(log));
  app.use(health({ pool, migration: currentMigration, isDraining }));
  app.use(servePublicPages(config.baseUrls));
  for (const middleware of reads) app.use(middleware);

  const bounds: ServerBounds = {
    ...config.bounds,
    unknownKeepAliveSeconds: Math.min(unknownKeepAliveSeconds, config.keepAliveSeconds),
    isTrusted: (address) => isTrustedPeer(address, config.trustedProxies),
    onCut: (cut) => {
      metrics.answersCut.inc({ reason: cut.reason });
      log.warn(cut, 'a connection was cut: its client did not read its answer');
    },
    onRefused: () => metrics.connectionsRefused.inc(),
  };
  const metricsServer = await startServer({
    handler: serveMetrics(metrics.registry),
    host: config.host,
    port: config.metricsPort,
  });
  const listening = await startServer({
    handler: app.callback(),
    host: config.host,
    port: config.port,
    drainDelayMs: config.drainDelayMs,
    keepAliveSeconds: config.keepAliveSeconds,
    headers: securityHeaders,
    bounds,
    onDraining: () => {
      draining = true;
    },
  });

  server = listening;

  async function close(): Promise<void> {
    await listening.stop();
    await refusals.stop();
    settings.stop();
    await limiter.stop();
    await metricsServer.stop();
    await database.close();
    await tracing.stop();
  }
  log.info({ url: listening.url, metricsUrl: metricsServer.url }, 'the API is listening');
  let stopping: Promise<void> | undefined;
  return {
    url: listening.url,
    metricsUrl: metricsServer.url,
    stop: () => {
      stopping ??= close();
      return stopping;
    },
  };
}
