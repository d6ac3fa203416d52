import { openDatabase } from '#domain/db/connect.ts';
import { startServer } from '#runtime/http-server.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import { serveMetrics } from '#runtime/metrics-page.ts';
import type { WorkerConfig } from './config.ts';
import { startDeliveries } from './deliveries.ts';
import { ledgerMetrics } from './ledger-metrics.ts';
import { createMaintenance } from './maintenance.ts';
import { createMetrics } from './metrics.ts';

/** Starts the worker: the maintenance loop, the relay with Temporal's workers, and their metrics. `stop` may be called twice. */
export async function startWorker(
  config: WorkerConfig,
  log: Logger,
): Promise<{ metricsUrl: string; stop(): Promise<void> }> {
  const metrics = createMetrics();
  const database = await openDatabase({
    url: config.databaseUrl,
    applicationName: 'org-api-worker',
    poolMax: config.databasePoolMax,
  });
  const maintenance = createMaintenance({
    databaseUrl: config.databaseUrl,
    activityRetentionDays: config.activityRetentionDays,
    onEnded: (grants) => metrics.grantsEnded.inc(grants),
    onRound: () => metrics.lastRound.setToCurrentTime(),
    onError: (cause) =>
      log.error({ error: describeError(cause) }, 'maintenance could not run; it tries again in a second'),
  });
  await maintenance.start();
  const deliveries = await startDeliveries({ config, pool: database.pool, metrics, log });
  const ledger = ledgerMetrics(database.pool, metrics.registry, {
    onError: (cause) => log.error({ error: describeError(cause) }, 'the ledger could not be read; tried again in 15 s'),
  });
  await ledger.start();
  const server = await startServer({
    handler: serveMetrics(metrics.registry),
    host: config.host,
    port: config.metricsPort,
  });
  log.info({ metricsUrl: server.url }, 'the worker is running');

  async function close(): Promise<void> {
    await deliveries.stop();
    await ledger.stop();
    await maintenance.stop();
    await server.stop();
    await database.close();
  }
  let stopping: Promise<void> | undefined;
  return {
    metricsUrl: server.url,
    stop: () => {
      stopping ??= close();
      return stopping;
    },
  };
}
