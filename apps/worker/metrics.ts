import { collectDefaultMetrics, Registry } from 'prom-client';
import { metricsIn } from '#runtime/metrics.ts';
import { tryOutcomes } from './mail/smtp.ts';
import { maintenanceSteps } from './maintenance-steps.ts';

/** The metrics of the worker's maintenance. Labels never name an organization, a webhook or an address. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const { counter, gauge } = metricsIn(registry);
  const maintenanceFailures = counter(
    'org_api_maintenance_failures_total',
    'Failed tries of one step of maintenance; the others continue.',
    'step',
  );
  // Set from the start; otherwise the first failure would be no increase.
  for (const step of maintenanceSteps) maintenanceFailures.inc({ step }, 0);
  const mailTries = counter('org_api_mail_tries_total', 'Tries to send a mail, by how they ended.', 'outcome');
  for (const outcome of tryOutcomes) mailTries.inc({ outcome }, 0);
  return {
    registry,
    grantsEnded: counter('org_api_grants_ended_total', 'Grants ended because their end had passed.'),
    lastRun: gauge(
      'org_api_maintenance_last_run_timestamp_seconds',
      'When this process last carried out a step of maintenance; 0 while others carry out all of them.',
    ),
    mailTries,
    mailsDropped: counter(
      'org_api_mails_dropped_total',
      'Mails that were not sent, because no mail server is configured.',
    ),
    maintenanceFailures,
    purged: counter(
      'org_api_retention_purged_total',
      'Settled deliveries, and events without any, that were older than their retention and are gone.',
      'kind',
    ),
    webhooksSuspended: counter(
      'org_api_webhooks_suspended_total',
      'Webhooks suspended because they failed for SUSPEND_AFTER, or answered 410.',
    ),
  };
}
