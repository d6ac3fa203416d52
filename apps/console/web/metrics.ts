import type { Pool } from 'pg';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { hashLoad } from '#domain/identity/password.ts';
import type { Serving } from '#runtime/serve-app.ts';
import { createServerMetrics } from '#runtime/server-metrics.ts';

/**
 * The console's Prometheus metrics. Labels are route names, methods, statuses and codes: never a
 * person, an organization or an address.
 */
export function createMetrics(pool: Pool, serving: Serving) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const requests = new Histogram({
    name: 'org_console_request_duration_seconds',
    help: 'Time from a request’s arrival to its response, by route and status; its count is the number of requests.',
    labelNames: ['operation', 'status'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const rejectedForms = new Counter({
    name: 'org_console_rejected_forms_total',
    help: 'Forms that were not carried out, by reason.',
    labelNames: ['code'],
    registers,
  });
  new Gauge({
    name: 'org_console_password_hashes',
    help: 'Password hashes, by state; a process carries out one less than it has cores, three at most.',
    labelNames: ['state'],
    registers,
    collect() {
      const { running, waiting } = hashLoad();
      this.set({ state: 'running' }, running);
      this.set({ state: 'waiting' }, waiting);
    },
  });
  return {
    registry,
    ...createServerMetrics('org_console', registry, { pool, serving }),
    observe(operation: string, method: string, status: number, code: string | undefined, seconds: number): void {
      requests.observe({ operation, status }, seconds);
      if (method === 'POST' && code !== undefined) rejectedForms.inc({ code });
    },
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
