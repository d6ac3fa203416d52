import Koa from 'koa';
import { openDatabase } from '#domain/db/connect.ts';
import { currentMigration } from '#domain/db/migrations/index.ts';
import { createSignInLimiter } from '#domain/identity/sign-in-limiter.ts';
import { health } from '#runtime/health.ts';
import { type RunningServer, startServer } from '#runtime/http-server.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import { serveMetrics } from '#runtime/metrics-page.ts';
import { createRefusalCounter } from '#runtime/refusal-counter.ts';
import { watchSettings } from '#runtime/settings/watch.ts';
import type { ConsoleConfig } from './config.ts';
import { createMetrics } from './metrics.ts';
import { places } from './routes.ts';
import { serveAssets } from './web/assets.ts';
import { isSocketAbort } from './web/client-abort.ts';
import { createRouters } from './web/pipeline.ts';
import { drawProblems } from './web/problems.ts';
import { recordKeysAtConsole, refuseKeys } from './web/refuse-keys.ts';
import { logRequests } from './web/request-log.ts';
import { headersOfEveryAnswer, setPageHeaders, setSecurityHeaders } from './web/security-headers.ts';
import { createDownloads } from './web/send-file.ts';
import type { ConsoleParts } from './web/visit.ts';
import { createWorkflows, withoutTemporal } from './workflows.ts';

/** A running console: where it listens, and how to stop it without losing a request. */
export interface RunningConsole {
  url: string;
  metricsUrl: string;
  stop(): Promise<void>;
}

/**
 * Opens everything the console needs, top to bottom, and serves. `stop` closes in reverse order; it
 * may be called twice.
 *
 * @param now - the clock that sessions, links and codes live by.
 */
export async function startConsole(
  config: ConsoleConfig,
  log: Logger,
  now: () => Date = () => new Date(),
): Promise<RunningConsole> {
  let draining = false;
  let server: RunningServer | null = null;
  const isDraining = () => draining;
  const { trustedProxies, keys, factors } = config;

  const database = await openDatabase({
    url: () => config.databaseUrl,
    applicationName: 'org-console',
    poolMax: config.databasePoolMax,
  });
  const { pool } = database;
  const metrics = createMetrics(pool, () => server);
  const settings = watchSettings({ followed: config.followed, registry: metrics.registry, log });
  settings.start();
  const workflows = createWorkflows(config.temporal);
  if (!workflows.isConfigured) log.warn(withoutTemporal);
  const parts: ConsoleParts = {
    region: config.region,
    em: database.orm.em,
    pool,
    keys,
    factors,
    trustedProxies,
    webhookAllow: config.webhookAllow,
    signInLimiter: createSignInLimiter({ now }),
    workflows,
    apiUrl: config.apiUrl,
    origin: config.origin,
    now,
    downloads: createDownloads(),
  };

  const refusals = createRefusalCounter({
    record: (counts) => recordKeysAtConsole(pool, counts),
    onError: (cause) =>
      log.error(
        { error: describeError(cause) },
        'the counts of refused keys could not be written; they are kept for the next try',
      ),
  });
  void refusals.start();

  const app = new Koa();
  app.silent = true;
  app.on('error', (error) => {
    if (!isSocketAbort(error)) log.error({ error: describeError(error) }, 'an answer could not be sent');
  });
  app.use(logRequests({ log, metrics, isDraining }));
  app.use(setSecurityHeaders);
  app.use(setPageHeaders);
  app.use(drawProblems(log, now));
  app.use(health({ pool, migration: currentMigration, isDraining }));
  app.use(refuseKeys({ refusals, keys, trustedProxies }));
  app.use(serveAssets);
  for (const router of createRouters(places, parts)) app.use(router);

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
    headers: headersOfEveryAnswer(config.origin.startsWith('https:')),
    bounds: {
      ...config.bounds,
      onCut: (cut) => {
        metrics.answersCut.inc({ reason: cut.reason });
        log.warn(cut, 'a connection was cut: its client did not read its answer');
      },
      onRefused: () => metrics.connectionsRefused.inc(),
    },
    onDraining: () => {
      draining = true;
    },
  });

  server = listening;

  async function close(): Promise<void> {
    await listening.stop();
    await refusals.stop();
    settings.stop();
    await workflows.close();
    await metricsServer.stop();
    await database.close();
  }
  log.info({ url: listening.url, metricsUrl: metricsServer.url }, 'the console is listening');
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
