import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { maintenanceSteps } from './maintenance-steps.ts';

/**
 * The worker's Prometheus metrics. Labels are event types, outcomes and causes, and never an
 * organization, a webhook or an address.
 */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const maintenanceFailures = new Counter({
    name: 'org_api_maintenance_failures_total',
    help: 'Failed tries of one step of maintenance; the others go on.',
    labelNames: ['step'],
    registers,
  });
  const replacedWorkflows = new Counter({
    name: 'org_api_delivery_workflows_replaced_total',
    help:
      'Workflows that made no progress and were terminated, their deliveries given a new round. ' +
      'failing: a workflow task failed each time; stranded: no worker would get a task.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of ['failing', 'stranded']) replacedWorkflows.inc({ reason }, 0);
  // Set from the start; otherwise the first failure would be no increase.
  for (const step of maintenanceSteps) maintenanceFailures.inc({ step }, 0);
  return {
    registry,
    grantsEnded: new Counter({
      name: 'org_api_grants_ended_total',
      help: 'Grants ended because their end had passed.',
      registers,
    }),
    lastRun: new Gauge({
      name: 'org_api_maintenance_last_run_timestamp_seconds',
      help: 'When this process last maintained the database; 0 while another one does.',
      registers,
    }),
    maintenanceFailures,
    purged: new Counter({
      name: 'org_api_retention_purged_total',
      help: 'Settled deliveries, and events without any, that were older than their retention and are gone.',
      labelNames: ['kind'],
      registers,
    }),
    webhooksSuspended: new Counter({
      name: 'org_api_webhooks_suspended_total',
      help: 'Webhooks suspended because they accepted nothing for SUSPEND_AFTER.',
      registers,
    }),
    moved: new Counter({
      name: 'org_api_deliveries_moved_total',
      help: 'Open deliveries that the maintenance loop started again after a resume, or cancelled after a deletion.',
      labelNames: ['how'],
      registers,
    }),
    attempts: new Histogram({
      name: 'org_api_delivery_attempt_duration_seconds',
      help:
        'Time of one attempt from look-up to the end of its answer, by outcome; its count is the ' +
        'number of attempts.',
      labelNames: ['outcome', 'cause'],
      buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    internalErrors: new Counter({
      name: 'org_api_delivery_internal_errors_total',
      help:
        'Attempts that could not be made, or whose outcome could not be recorded, because of an error ' +
        'of the service, by cause.',
      labelNames: ['cause'],
      registers,
    }),
    firstAttemptDelay: new Histogram({
      name: 'org_api_delivery_first_attempt_delay_seconds',
      help:
        'From the creation of an event, by the time in its id, to its first attempt at a webhook, ' +
        'including time in which the webhook was parked or had no free concurrency slot.',
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600],
      registers,
    }),
    claimed: new Counter({
      name: 'org_api_deliveries_claimed_total',
      help: 'Deliveries whose workflows this process was to start.',
      registers,
    }),
    rampIsStopped: new Gauge({
      name: 'org_api_worker_ramp_is_stopped',
      help: '1 while this worker’s version takes no traffic because its workflow tasks failed; else 0.',
      registers,
    }),
    versionIsCurrent: new Gauge({
      name: 'org_api_worker_version_is_current',
      help:
        '1 while this worker’s version is the current one of its deployment in Temporal, or workers ' +
        'have no versions; else 0.',
      registers,
    }),
    repaired: new Counter({
      name: 'org_api_deliveries_repaired_total',
      help: 'Overdue deliveries without a workflow that were given a new round.',
      registers,
    }),
    retriesRequested: new Counter({
      name: 'org_api_deliveries_retries_requested_total',
      help: 'Overdue deliveries whose workflow waited and was asked to retry now.',
      registers,
    }),
    replacedWorkflows,
    cancelledWorkflows: new Counter({
      name: 'org_api_delivery_workflows_cancelled_total',
      help: 'Workflows that were ended because their delivery is parked, settled or in another round.',
      registers,
    }),
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
