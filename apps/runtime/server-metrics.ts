import { Counter, Gauge, type Registry } from 'prom-client';
import type { RunningServer } from './http-server.ts';

/**
 * What a server that bounds its clients counts. `prefix` is the app's: `org_api`, `org_console`;
 * `server` is null until it listens.
 */
export function createServerMetrics(prefix: string, registry: Registry, server: () => RunningServer | null) {
  const registers = [registry];
  new Gauge({
    name: `${prefix}_connections`,
    help: 'Connections that are open.',
    registers,
    async collect() {
      this.set((await server()?.countConnections()) ?? 0);
    },
  });
  return {
    answersCut: new Counter({
      name: `${prefix}_answers_cut_total`,
      help:
        'Connections cut because their clients did not read an answer, by reason: slow (below the ' +
        'minimum throughput) or deadline.',
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
