import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';

/** The operator's Prometheus metrics. Labels are kinds, actions and resources, never a name. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const counter = <L extends string>(name: string, labelNames: L[], help: string) =>
    new Counter({ name, help, labelNames, registers });
  const gauge = <L extends string>(name: string, labelNames: L[], help: string) =>
    new Gauge({ name, help, labelNames, registers });
  return {
    registry,
    isLeader: gauge(
      'org_api_operator_is_leader',
      [],
      '1 while this replica has the Lease and works on objects; else 0.',
    ),
    passes: counter('org_api_operator_passes_total', ['kind'], 'Objects that were looked at, by kind.'),
    failures: counter('org_api_operator_failures_total', ['kind'], 'Passes that failed and are repeated, by kind.'),
    actions: counter(
      'org_api_operator_actions_total',
      ['kind', 'action'],
      'Actions that were carried out, by kind and action.',
    ),
    requests: counter(
      'org_api_operator_requests_total',
      ['method', 'resource'],
      'Requests to the API server, by method and resource; watches do not count.',
    ),
    listedAt: gauge(
      'org_api_operator_listed_timestamp_seconds',
      ['kind'],
      'When the objects of a kind were last listed, in seconds since 1970.',
    ),
    regionCondition: gauge(
      'org_api_operator_region_condition',
      ['type', 'status'],
      '1 for the status that a condition of the Region has, by type; else 0. Only the leader shows it.',
    ),
  };
}
