import { startDeliveries } from '#delivery/index.ts';
import { openDatabase } from '#domain/open-database.ts';
import { once } from '#runtime/flow/once.ts';
import { startServer } from '#runtime/http-server.ts';
import { describeError, errorLogger, type Logger } from '#runtime/log.ts';
import { serveMetrics } from '#runtime/metrics-page.ts';
import { rejectPooler } from '#runtime/reject-pooler.ts';
import { watchSettings } from '#runtime/settings/watch.ts';
import { openTracing } from '#runtime/tracing.ts';
import { AnchorSender } from './audit-log-anchors.ts';
import { AuditLogStream } from './audit-log-stream.ts';
import type { WorkerConfig } from './config.ts';
import { ledgerMetrics } from './ledger-metrics.ts';
import { Mailer } from './mail/mailer.ts';
import { Maintenance } from './maintenance.ts';
import { createMetrics } from './metrics.ts';
import { waitForSchema } from './schema.ts';
import { stateMetrics } from './state-metrics.ts';

/**
 * Starts the worker: metrics and health and, once the schema is current, the maintenance loop and
 * the relay with Temporal's workers. Until Temporal has answered, the worker is live and not ready.
 */
export async function startWorker(
  config: WorkerConfig,
  log: Logger,
  coreMetrics?: string,
): Promise<{ metricsUrl: string; stop(): Promise<void> }> {
  const metrics = createMetrics();
  const tracing = await openTracing({ otlpEndpoint: config.otlpEndpoint, app: 'worker', region: config.region });
  const database = await openDatabase({
    server: () => config.database,
    applicationName: 'org-api-worker',
    poolMax: config.databasePoolMax,
  });
  await rejectPooler(database, 'WORKER_DATABASE_URL');
  const settings = watchSettings({ followed: config.followed, registry: metrics.registry, log });
  void settings.start();
  let findUnreadiness: () => string | null = () => 'starting';
  const server = await startServer({
    handler: serveMetrics(metrics.registry, () => findUnreadiness()),
    host: config.host,
    port: config.metricsPort,
  });
  await waitForSchema(database.pool, (reason) => {
    findUnreadiness = () => reason;
    log.warn({ reason }, 'waiting for the schema');
  });
  const streamTo =
    config.isAuditLogStreamed && config.otlpEndpoint !== null
      ? { otlpEndpoint: config.otlpEndpoint, region: config.region }
      : null;
  const anchorSender = streamTo && new AnchorSender(streamTo);
  const maintenance = new Maintenance({
    server: () => config.database,
    auditLogRetentionDays: config.auditLogRetentionDays,
    deliveryRetentionDays: config.deliveryRetentionDays,
    suspendAfterSeconds: config.suspendAfterSeconds,
    onEnded: (grants) => metrics.grantsEnded.inc(grants),
    onSuspended: (webhooks) => metrics.webhooksSuspended.inc(webhooks),
    onErased: (erasure) => log.info({ erasure }, 'a family was erased'),
    onAnchor: (anchor) => log.info({ auditAnchor: anchor }, 'anchored a hash chain of the audit log'),
    async sendAnchors(anchors) {
      try {
        await anchorSender?.send(anchors);
        return true;
      } catch (cause) {
        metrics.maintenanceFailures.inc({ step: 'anchor_audit_log' });
        log.error({ error: describeError(cause) }, 'anchors of the audit log could not be sent; tried in an hour');
        return false;
      }
    },
    onPurged: ({ deliveries, events }) => {
      metrics.purged.inc({ kind: 'delivery' }, deliveries);
      metrics.purged.inc({ kind: 'event' }, events);
    },
    onRun: () => metrics.lastRun.setToCurrentTime(),
    onError: (cause, step) => {
      const error = describeError(cause);
      if (step === null) return log.error({ error }, 'maintenance could not run; it tries again in a second');
      metrics.maintenanceFailures.inc({ step });
      log.error({ step, error }, 'a step of maintenance failed; it is retried in ten seconds, and the others continue');
    },
  });
  await maintenance.start();
  const stream =
    streamTo &&
    new AuditLogStream({
      ...streamTo,
      db: database,
      onError: errorLogger(log, 'the audit log could not be streamed; tried again soon'),
    });
  void stream?.start();
  const mailer = new Mailer({
    pool: database.pool,
    settings: config.mail,
    keys: () => config.webhookSecretKeys,
    onTried: (outcome) => metrics.mailTries.inc({ outcome }),
    onDropped: (mails) => metrics.mailsDropped.inc(mails),
    onError: errorLogger(log, 'a mail could not be sent; tried again soon'),
  });
  mailer.start();
  const deliveries = await startDeliveries({
    config,
    database,
    registry: metrics.registry,
    tracing,
    log,
    coreMetrics,
  });
  const ledger = ledgerMetrics(database, metrics.registry, {
    onError: errorLogger(log, 'the ledger could not be read; tried again in 15 s'),
  });
  await ledger.start();
  const states = stateMetrics(database, metrics.registry, {
    onError: errorLogger(log, 'a state of the database could not be read; tried again in a minute'),
  });
  await states.start();
  findUnreadiness = deliveries.findUnreadiness;
  log.info({ metricsUrl: server.url, isOpen: deliveries.isOpen() }, 'the worker is running');

  async function close(): Promise<void> {
    findUnreadiness = () => 'draining';
    const parts = [mailer, deliveries, states, ledger, stream, maintenance, anchorSender, server, settings, tracing];
    for (const part of parts) await part?.stop();
    await database.close();
  }
  return { metricsUrl: server.url, stop: once(close) };
}
