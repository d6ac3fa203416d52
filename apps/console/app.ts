import Koa from 'koa';
import { openDatabase } from '#domain/open-database.ts';
import { createFetch } from '#runtime/egress/fetch.ts';
import { createResolve } from '#runtime/egress/resolve.ts';
import { findSignal } from '#runtime/flow/cancellation.ts';
import { health } from '#runtime/health.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import { rejectPooler } from '#runtime/reject-pooler.ts';
import { RejectedCallCounter } from '#runtime/rejected-call-counter.ts';
import { notServing, type RunningApp, serveApp } from '#runtime/serve-app.ts';
import { watchSettings } from '#runtime/settings/watch.ts';
import type { ConsoleConfig } from './config.ts';
import { isSocketAbort } from './middleware/client-abort.ts';
import { createRouters } from './middleware/pipeline.ts';
import { rejectFaults, renderProblems } from './middleware/problems.ts';
import { recordKeysAtConsole, rejectKeys } from './middleware/reject-keys.ts';
import { logRequests } from './middleware/request-log.ts';
import { headersOfEveryResponse, setPageHeaders, setSecurityHeaders } from './middleware/security-headers.ts';
import { createStepUpPaths } from './middleware/step-up.ts';
import { stopMail } from './middleware/stop-mail.ts';
import { routes, sections } from './routes.ts';
import { serveAssets } from './web/assets.ts';
import { createDownloads } from './web/downloads.ts';
import { createMetrics } from './web/metrics.ts';
import { OpenIdProviders } from './web/openid.ts';
import { createShares } from './web/shares.ts';
import { Workflows, withoutTemporal } from './web/temporal.ts';
import type { ConsoleDependencies } from './web/visit.ts';

/**
 * Opens everything that the console needs, from top to bottom, and serves. `stop` closes in reverse
 * order; it may be called twice.
 *
 * @param now - the clock for sessions, links and codes.
 */
export async function startConsole(
  config: ConsoleConfig,
  log: Logger,
  now: () => Date = () => new Date(),
): Promise<RunningApp> {
  const serving = notServing();
  const isDraining = () => serving.isDraining;
  const { trustedProxies, keys, factors } = config;

  const database = await openDatabase({
    server: () => config.database,
    applicationName: 'org-console',
    poolMax: config.databasePoolMax,
    ...config.databaseTimes,
    findSignal,
  });
  await rejectPooler(database, 'CONSOLE_DATABASE_URL');
  const { pool } = database;
  const metrics = createMetrics(pool, serving);
  const settings = watchSettings({ followed: config.followed, registry: metrics.registry, log });
  void settings.start();
  const workflows = new Workflows(config.temporal);
  if (!workflows.isConfigured) log.warn(withoutTemporal);
  const dependencies: ConsoleDependencies = {
    region: config.region,
    database,
    keys,
    factors,
    trustedProxies,
    webhookAllow: config.webhookAllow,
    openId: new OpenIdProviders({
      fetch: createFetch({ allow: config.webhookAllow, resolve: createResolve() }),
      callbackUrl: `${config.origin}/sign-in/callback`,
      now,
    }),
    workflows,
    apiUrl: config.apiUrl,
    sendsMail: config.sendsMail,
    origin: config.origin,
    now,
    shares: createShares(config.databasePoolMax),
    downloads: createDownloads(),
    mayStepUp: createStepUpPaths(routes),
  };

  const rejectedCalls = new RejectedCallCounter({
    record: (counts) => recordKeysAtConsole(database, counts),
    onError: (cause) =>
      log.error(
        { error: describeError(cause) },
        'the counts of rejected keys could not be written; they are kept for the next try',
      ),
  });
  void rejectedCalls.start();

  const app = new Koa();
  app.silent = true;
  app.on('error', (error) => {
    if (!isSocketAbort(error)) log.error({ error: describeError(error) }, 'a response could not be sent');
  });
  app.use(logRequests({ log, metrics, isDraining }));
  app.use(setSecurityHeaders);
  app.use(setPageHeaders);
  app.use(renderProblems(log, now));
  app.use(rejectFaults);
  app.use(health({ pool, isDraining }));
  app.use(rejectKeys({ rejectedCalls, keys, trustedProxies }));
  app.use(serveAssets);
  app.use(stopMail({ database, keys: () => factors.sealingKeys }));
  for (const router of createRouters(sections, dependencies)) app.use(router);

  return serveApp(serving, {
    name: 'the console',
    handler: app.callback(),
    handlesFaults: true,
    headers: headersOfEveryResponse(config.origin.startsWith('https:')),
    config,
    metrics,
    log,
    async close() {
      await rejectedCalls.stop();
      await settings.stop();
      await workflows.close();
      await database.close();
    },
  });
}
