import type { Pool } from 'pg';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { Serving } from './serve-app.ts';

/** Counts what a server's clients and its pool hold. `prefix`: `org_api`, `org_console`. */
export function createServerMetrics(
  prefix: string,
  registry: Registry,
  { pool, serving }: { pool: Pool; serving: Serving },
) {
  const registers = [registry];
  new Gauge({
    name: `${prefix}_connections`,
    help: 'Connections that are open.',
    registers,
    async collect() {
      this.set((await serving.server?.countConnections()) ?? 0);
    },
  });
  new Gauge({
    name: `${prefix}_database_connections`,
    help: 'Connections of the pool, by state; waiting are requests without one.',
    labelNames: ['state'],
    registers,
    collect() {
      this.set({ state: 'open' }, pool.totalCount);
      this.set({ state: 'idle' }, pool.idleCount);
      this.set({ state: 'waiting' }, pool.waitingCount);
    },
  });
  return {
    responsesCut: new Counter({
      name: `${prefix}_responses_cut_total`,
      help:
        'Connections that were cut, by reason: slow (responses read below the minimum throughput), ' +
        'deadline, or pipelined (more than 16 requests in progress).',
      labelNames: ['reason'],
      registers,
    }),
    connectionsRefused: new Counter({
      name: `${prefix}_connections_refused_total`,
      help: 'Connections refused because there were as many as there may be.',
      registers,
    }),
  };
}
