import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';

/** The operator's Prometheus metrics. Labels are kinds, actions and resources, never a name. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    isLeader: new Gauge({
      name: 'org_api_operator_is_leader',
      help: '1 while this replica has the Lease and works on objects; else 0.',
      registers,
    }),
    passes: new Counter({
      name: 'org_api_operator_passes_total',
      help: 'Objects that were looked at, by kind.',
      labelNames: ['kind'],
      registers,
    }),
    failures: new Counter({
      name: 'org_api_operator_failures_total',
      help: 'Passes that failed and are repeated, by kind.',
      labelNames: ['kind'],
      registers,
    }),
    actions: new Counter({
      name: 'org_api_operator_actions_total',
      help: 'Actions that were carried out, by kind and action.',
      labelNames: ['kind', 'action'],
      registers,
    }),
    requests: new Counter({
      name: 'org_api_operator_requests_total',
      help: 'Requests to the API server, by method and resource; watches do not count.',
      labelNames: ['method', 'resource'],
      registers,
    }),
    listedAt: new Gauge({
      name: 'org_api_operator_listed_timestamp_seconds',
      help: 'When the objects of a kind were last listed, in seconds since 1970.',
      labelNames: ['kind'],
      registers,
    }),
    regionCondition: new Gauge({
      name: 'org_api_operator_region_condition',
      help: '1 for the status that a condition of the Region has, by type; else 0. Only the leader shows it.',
      labelNames: ['type', 'status'],
      registers,
    }),
  };
}
