import type { Pool } from 'pg';
import type { Registry } from 'prom-client';
import { countFailingWebhooksSql, type FailingWebhooks } from '#domain/db/statements/count-webhooks.ts';
import { type Ledger, readLedger, rollUpLedger } from '#domain/webhooks/ledger.ts';
import { createIntervalLoop } from '#runtime/interval-loop.ts';
import { metricsIn } from '#runtime/metrics.ts';

const help: Record<keyof Ledger, string> = {
  obligations: 'Deliveries that events require, as counted when they were created.',
  delivered: 'Deliveries that a receiver accepted.',
  waiting: 'Deliveries that wait for an attempt.',
  parked: 'Deliveries of parked webhooks.',
  exhausted: 'Deliveries whose schedule ended without a 2xx.',
  cancelled: 'Deliveries whose webhook was deleted.',
  difference: 'Deliveries that events require, less settled and open deliveries. Alert when it is not 0.',
  missing: 'Required deliveries that are absent, or settled without proof. Alert when it is not 0.',
  surplus: 'Deliveries and settlements without a cause. Alert when it is not 0.',
  unexplained: 'Changes without their event, and sequence numbers without their delivery. Alert when it is not 0.',
  overdue: 'Deliveries of active webhooks that are more than a minute late.',
  stuck: 'Overdue deliveries that do not wait for their own receiver. Alert when it stays above 0.',
};

/**
 * Shows the ledger and the failing webhooks as gauges, every 15 s. Each run first rolls up settled
 * deliveries, which keeps the query short. Every worker shows the same figures, so a graph takes
 * their maximum. A run that fails leaves the previous figures and their time.
 */
export function ledgerMetrics(
  pool: Pool,
  registry: Registry,
  { everyMs = 15_000, onError }: { everyMs?: number; onError: (cause: unknown) => void },
) {
  const { gauge } = metricsIn(registry);
  const figures = Object.entries(help) as [keyof Ledger, string][];
  const gauges = figures.map(([figure, text]) => ({ figure, gauge: gauge(`org_api_ledger_${figure}`, text) }));
  const readAt = gauge('org_api_ledger_read_timestamp_seconds', 'When the ledger was last read.');
  const webhooks = gauge(
    'org_api_webhooks',
    'Webhooks that are not well: failing (active, only failures came back lately), suspended (nothing was ' +
      'accepted for SUSPEND_AFTER) and paused (by a person).',
    'state',
  );

  async function refresh(): Promise<void> {
    await rollUpLedger(pool);
    const ledger = await readLedger(pool);
    for (const { figure, gauge } of gauges) gauge.set(ledger[figure]);
    const { rows } = await pool.query<FailingWebhooks>({ name: 'countFailingWebhooks', text: countFailingWebhooksSql });
    for (const [state, count] of Object.entries(rows[0] ?? {})) webhooks.set({ state }, count);
    readAt.setToCurrentTime();
  }

  return createIntervalLoop({ run: refresh, everyMs, onError });
}
