import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** The worker's Prometheus metrics. Labels are event types, outcomes and causes: never an organization, a webhook or an address. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    grantsEnded: new Counter({
      name: 'org_api_grants_ended_total',
      help: 'Grants ended because their end had passed.',
      registers,
    }),
    lastRound: new Gauge({
      name: 'org_api_maintenance_last_round_timestamp_seconds',
      help: 'When this process last maintained the database; 0 while another one does.',
      registers,
    }),
    attempts: new Histogram({
      name: 'org_api_delivery_attempt_duration_seconds',
      help: 'Time of one attempt from look-up to the end of its answer, by outcome; its count is the number of attempts.',
      labelNames: ['outcome', 'cause'],
      buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    claimed: new Counter({
      name: 'org_api_deliveries_claimed_total',
      help: 'Deliveries whose workflows this process was to start.',
      registers,
    }),
    repaired: new Counter({
      name: 'org_api_deliveries_repaired_total',
      help: 'Overdue deliveries without a workflow that were given a new round.',
      registers,
    }),
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
