import { collectDefaultMetrics, Histogram, Registry } from 'prom-client';
import { metricsIn } from '#runtime/metrics.ts';
import { maintenanceSteps } from './maintenance-steps.ts';

/** The worker's metrics. Labels never name an organization, a webhook or an address. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const { counter, gauge } = metricsIn(registry);
  const maintenanceFailures = counter(
    'org_api_maintenance_failures_total',
    'Failed tries of one step of maintenance; the others continue.',
    'step',
  );
  const replacedWorkflows = counter(
    'org_api_delivery_workflows_replaced_total',
    'Workflows that made no progress and were terminated, their deliveries given a new round. failing: a workflow ' +
      'task failed each time; stranded: no worker would get a task.',
    'reason',
  );
  for (const reason of ['failing', 'stranded']) replacedWorkflows.inc({ reason }, 0);
  // Set from the start; otherwise the first failure would be no increase.
  for (const step of maintenanceSteps) maintenanceFailures.inc({ step }, 0);
  return {
    registry,
    grantsEnded: counter('org_api_grants_ended_total', 'Grants ended because their end had passed.'),
    lastRun: gauge(
      'org_api_maintenance_last_run_timestamp_seconds',
      'When this process last maintained the database; 0 while another one does.',
    ),
    maintenanceFailures,
    purged: counter(
      'org_api_retention_purged_total',
      'Settled deliveries, and events without any, that were older than their retention and are gone.',
      'kind',
    ),
    webhooksSuspended: counter(
      'org_api_webhooks_suspended_total',
      'Webhooks suspended because they accepted nothing for SUSPEND_AFTER.',
    ),
    moved: counter(
      'org_api_deliveries_moved_total',
      'Open deliveries that the maintenance loop started again after a resume, or cancelled after a deletion.',
      'how',
    ),
    attempts: new Histogram({
      name: 'org_api_delivery_attempt_duration_seconds',
      help:
        'Time of one attempt from look-up to the end of its answer, by outcome; its count is the ' +
        'number of attempts.',
      labelNames: ['outcome', 'cause'],
      buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    internalErrors: counter(
      'org_api_delivery_internal_errors_total',
      'Attempts that could not be made, or whose outcome could not be recorded, because of an error of the ' +
        'service, by cause.',
      'cause',
    ),
    firstAttemptDelay: new Histogram({
      name: 'org_api_delivery_first_attempt_delay_seconds',
      help:
        'From the creation of an event, by the time in its id, to its first attempt at a webhook, ' +
        'including time in which the webhook was parked or had no free concurrency slot.',
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600],
      registers,
    }),
    claimed: counter('org_api_deliveries_claimed_total', 'Deliveries whose workflows this process was to start.'),
    isStopped: gauge(
      'org_api_worker_is_stopped',
      '1 while this worker delivers nothing because an internal error occurred before it was ready; else 0.',
    ),
    repaired: counter(
      'org_api_deliveries_repaired_total',
      'Overdue deliveries without a workflow that were given a new round.',
    ),
    retriesRequested: counter(
      'org_api_deliveries_retries_requested_total',
      'Overdue deliveries whose workflow waited and was asked to retry now.',
    ),
    replacedWorkflows,
    cancelledWorkflows: counter(
      'org_api_delivery_workflows_cancelled_total',
      'Workflows that were ended because their delivery is parked, settled or in another round.',
    ),
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
