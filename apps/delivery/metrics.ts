import { Histogram, type Registry } from 'prom-client';
import { metricsIn } from '#runtime/metrics.ts';
import { createTemporalGauges } from './temporal-metrics.ts';

/** The metrics of deliveries. Labels never name an organization, a webhook or an address. */
export function createDeliveryMetrics(registry: Registry) {
  const registers = [registry];
  const { counter, gauge } = metricsIn(registry);
  const repaired = counter(
    'org_api_deliveries_repaired_total',
    'Deliveries whose slot or run was past its time. lost: the attempt had no outcome in time; not_started: the run ' +
      'asked for no attempt in time; late: it did not ask when it was due; old_slot: only a slot was left.',
    'kind',
  );
  // Set from the start; otherwise the first one would be no increase.
  for (const kind of ['lost', 'not_started', 'late', 'old_slot']) repaired.inc({ kind }, 0);
  return {
    temporal: createTemporalGauges(registry),
    repaired,
    moved: counter(
      'org_api_deliveries_moved_total',
      'Sleeping deliveries of paused and suspended webhooks that were requeued, and open ones of deleted ' +
        'webhooks that were cancelled.',
      'how',
    ),
    attempts: new Histogram({
      name: 'org_api_delivery_attempt_duration_seconds',
      help:
        'Time of one attempt from look-up to the status line of its response, by outcome; its count is the ' +
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
        'including time in which the webhook was paused or suspended, or had no free concurrency slot.',
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600],
      registers,
    }),
    claimed: counter('org_api_deliveries_claimed_total', 'Deliveries whose runs this process was to start.'),
    isStopped: gauge(
      'org_api_worker_is_stopped',
      '1 while this worker delivers nothing because an internal error occurred before it was ready; else 0.',
    ),
  };
}

export type DeliveryMetrics = ReturnType<typeof createDeliveryMetrics>;
