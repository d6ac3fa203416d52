import type { Pool } from 'pg';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Serving } from '#runtime/serve-app.ts';
import { createServerMetrics } from '#runtime/server-metrics.ts';
import type { BodyReader } from './body-reader.ts';

/**
 * The API's Prometheus metrics. Labels are operations, statuses and modes, and never an
 * organization, a key or an address.
 */
export function createMetrics(pool: Pool, serving: Serving, bodyReader: () => BodyReader) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const limiterMode = new Gauge({
    name: 'org_api_limiter_without_redis',
    help: '1 while this pod limits by itself because Redis is unavailable, else 0.',
    registers,
  });
  const limiterSwitches = new Counter({
    name: 'org_api_limiter_switches_total',
    help: 'How often the limiter went from Redis to the pod and back, by the mode it went to.',
    labelNames: ['mode'],
    registers,
  });
  const auditEntriesPerInsert = new Histogram({
    name: 'org_api_audit_entries_per_insert',
    help: 'Audit entries that shared one insert.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 500],
    registers,
  });
  const readsPerStatement = new Histogram({
    name: 'org_api_reads_per_statement',
    help: 'Reads that shared one statement.',
    buckets: [1, 2, 4, 8, 16, 32],
    registers,
  });
  const auditEntriesRejected = new Counter({
    name: 'org_api_audit_entries_rejected_total',
    help: 'Audit entries that PostgreSQL did not commit; each of their reads got 500 or 503.',
    registers,
  });
  const bodiesEncoded = new Counter({
    name: 'org_api_bodies_encoded_total',
    help: 'Bodies that were encoded, by size (small, large) and encoding; reads that wait together share one.',
    labelNames: ['size', 'encoding'],
    registers,
  });
  const failedAuthentications = new Counter({
    name: 'org_api_failed_authentications_total',
    help: 'Requests that got 401.',
    registers,
  });
  const responseWaits = new Counter({
    name: 'org_api_response_waits_total',
    help:
      'Reads that waited for memory, a reader or a connection of large statements, by how that ended and ' +
      'by whose limit they met (key, organization, process).',
    labelNames: ['end', 'limit'],
    registers,
  });
  const { responsesCut, connectionsRefused } = createServerMetrics('org_api', registry, { pool, serving });
  new Gauge({
    name: 'org_api_response_reserved_bytes',
    help: 'Memory of responses that are being made or sent, by their size (small, large).',
    labelNames: ['size'],
    registers,
    collect() {
      const { smallBytes, largeBytes } = bodyReader().state;
      this.set({ size: 'small' }, smallBytes);
      this.set({ size: 'large' }, largeBytes);
    },
  });
  new Gauge({
    name: 'org_api_responses_waiting',
    help: 'Reads that wait for memory, a reader or a connection of large statements.',
    registers,
    collect() {
      this.set(bodyReader().state.waiting);
    },
  });

  return {
    registry,
    requests: new RequestDurations(registry),
    limiterMode,
    limiterSwitches,
    auditEntriesPerInsert,
    readsPerStatement,
    auditEntriesRejected,
    bodiesEncoded,
    failedAuthentications,
    responseWaits,
    responsesCut,
    connectionsRefused,
  };
}

/** How long requests took, by operation and status. */
class RequestDurations {
  readonly #histogram: Histogram<'operation' | 'status'>;
  /**
   * Finding a label pair by string once per response is measurable at thousands a second; there are
   * at most a few hundred pairs.
   */
  readonly #children = new Map<string, Histogram.Internal<'operation' | 'status'>>();

  constructor(registry: Registry) {
    this.#histogram = new Histogram({
      name: 'org_api_request_duration_seconds',
      help:
        'Time from a request’s arrival to its response by operation and status; its count is the number of ' +
        'requests.',
      labelNames: ['operation', 'status'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers: [registry],
    });
  }

  observe(operation: string, status: number, seconds: number): void {
    this.#children
      .getOrInsertComputed(`${operation} ${status}`, () => this.#histogram.labels(operation, String(status)))
      .observe(seconds);
  }
}

export type Metrics = ReturnType<typeof createMetrics>;
