import type { Pool } from 'pg';
import { Gauge, type Registry } from 'prom-client';
import { type Ledger, readLedger, rollUpLedger } from '#domain/webhooks/ledger.ts';

const help: Record<keyof Ledger, string> = {
  obligations: 'Deliveries that events were to have, as counted when they were made.',
  delivered: 'Deliveries that a receiver accepted.',
  waiting: 'Deliveries that wait for an attempt.',
  parked: 'Deliveries of parked webhooks.',
  exhausted: 'Deliveries whose schedule ended without a 2xx.',
  cancelled: 'Deliveries whose webhook was deleted.',
  difference: 'Obligations less settled and open deliveries. Alert when it is not 0.',
  overdue: 'Deliveries of active webhooks that are more than a minute late.',
};

/**
 * Shows the ledger as gauges, `org_api_ledger_<figure>`, read anew every 15 s; each round first rolls up what is settled, which keeps the reading short. Every worker
 * shows the same figures, so a graph takes their maximum. A round that fails leaves the last figures and the time of the last reading, and tells `onError`.
 *
 * `start` resolves after the first reading; `stop` may be called twice and before `start`, and waits for the round under way.
 */
export function ledgerMetrics(
  pool: Pool,
  registry: Registry,
  { everyMs = 15_000, onError = () => {} }: { everyMs?: number; onError?: (cause: unknown) => void } = {},
) {
  const figures = Object.keys(help) as (keyof Ledger)[];
  const gauges = figures.map((figure) => {
    const gauge = new Gauge({ name: `org_api_ledger_${figure}`, help: help[figure], registers: [registry] });
    return { figure, gauge };
  });
  const readAt = new Gauge({
    name: 'org_api_ledger_read_timestamp_seconds',
    help: 'When the ledger was last read.',
    registers: [registry],
  });
  let timer: NodeJS.Timeout | undefined;
  let round: Promise<void> | null = null;

  async function refresh(): Promise<void> {
    try {
      await rollUpLedger(pool);
      const ledger = await readLedger(pool);
      for (const { figure, gauge } of gauges) gauge.set(ledger[figure]);
      readAt.setToCurrentTime();
    } catch (cause) {
      onError(cause);
    }
  }

  function tick(): Promise<void> {
    round ??= refresh().finally(() => {
      round = null;
    });
    return round;
  }

  return {
    async start(): Promise<void> {
      timer = setInterval(tick, everyMs);
      await tick();
    },
    async stop(): Promise<void> {
      clearInterval(timer);
      await round;
    },
  };
}
