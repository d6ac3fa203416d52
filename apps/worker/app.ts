import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { startServer } from '#runtime/http-server.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import { serveMetrics } from '#runtime/metrics-page.ts';
import type { WorkerConfig } from './config.ts';
import { createMaintenance } from './maintenance.ts';

/** Starts the worker: for now the maintenance loop and its metrics. `stop` may be called twice. */
export async function startWorker(
  config: WorkerConfig,
  log: Logger,
): Promise<{ metricsUrl: string; stop(): Promise<void> }> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const grantsEnded = new Counter({
    name: 'org_api_grants_ended_total',
    help: 'Grants ended because their end had passed.',
    registers: [registry],
  });
  const lastRound = new Gauge({
    name: 'org_api_maintenance_last_round_timestamp_seconds',
    help: 'When this process last maintained the database; 0 while another one does.',
    registers: [registry],
  });
  const maintenance = createMaintenance({
    databaseUrl: config.databaseUrl,
    activityRetentionDays: config.activityRetentionDays,
    onEnded: (grants) => grantsEnded.inc(grants),
    onRound: () => lastRound.setToCurrentTime(),
    onError: (cause) =>
      log.error({ error: describeError(cause) }, 'maintenance could not run; it tries again in a second'),
  });
  await maintenance.start();
  const metrics = await startServer({ handler: serveMetrics(registry), host: config.host, port: config.metricsPort });
  log.info({ metricsUrl: metrics.url }, 'the worker is running');
  return {
    metricsUrl: metrics.url,
    async stop() {
      await maintenance.stop();
      await metrics.stop();
    },
  };
}
