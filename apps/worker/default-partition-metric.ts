import type { Pool } from 'pg';
import type { Registry } from 'prom-client';
import { defaultPartitionBytesSql } from '#domain/db/statements/maintenance.ts';
import { createIntervalLoop } from '#runtime/interval-loop.ts';
import { metricsIn } from '#runtime/metrics.ts';

/**
 * Shows whether rows of the activity log went to the default partition, because their month had
 * none. It is a size and not a count: the worker may not read the log, and a table that never had a
 * row has 0 bytes. While it cannot be read, the figure is absent.
 */
export function defaultPartitionMetric(
  pool: Pool,
  registry: Registry,
  { everyMs = 60_000, onError }: { everyMs?: number; onError: (cause: unknown) => void },
) {
  const gauge = metricsIn(registry).gauge(
    'org_api_activity_default_partition_bytes',
    'Size of the activity log’s default partition. Alert when it is not 0: a month had no partition.',
  );

  async function look(): Promise<void> {
    try {
      const { rows } = await pool.query<{ bytes: number }>(defaultPartitionBytesSql);
      gauge.set(rows[0]?.bytes ?? 0);
    } catch (cause) {
      gauge.remove(); // unknown is not 0, and the alert fires on a missing figure
      throw cause;
    }
  }

  return createIntervalLoop({ run: look, everyMs, onError });
}
