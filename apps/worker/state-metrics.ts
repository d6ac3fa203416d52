import { CompiledQuery } from 'kysely';
import type { Gauge, Registry } from 'prom-client';
import { auditLogStateSql } from '#domain/audit-log/retention.ts';
import { erasureLimitSql } from '#domain/clients/erase-family.ts';
import type { Queryable } from '#domain/db/database.ts';
import { IntervalLoop } from '#runtime/flow/interval-loop.ts';
import { metricsIn } from '#runtime/metrics.ts';

/**
 * Shows states of the database that need a person. While one cannot be read, its figures are
 * absent, and the alerts fire on that.
 *
 * - The size of the audit log's default partition, where entries went whose month had none. It is a
 *   size and not a count: the worker may not read the audit log, and a table that never had an entry has
 *   0 bytes.
 * - The age of the oldest entry that has no link in the hash chains.
 * - How much of the limit of erasures the platform has used: a stolen login of the platform can
 *   destroy, up to this limit.
 */
export function stateMetrics(
  db: Queryable,
  registry: Registry,
  { everyMs = 60_000, onError }: { everyMs?: number; onError: (cause: unknown) => void },
) {
  const { gauge } = metricsIn(registry);
  /** Statements that return one row, and the gauge of each column. */
  const states: { text: string; gauges: Record<string, Gauge<never>> }[] = [
    {
      text: auditLogStateSql,
      gauges: {
        defaultPartitionBytes: gauge(
          'org_api_audit_log_default_partition_bytes',
          'Size of the audit log’s default partition. Alert when it is not 0: a month had no partition.',
        ),
        unlinkedAgeSeconds: gauge(
          'org_api_audit_log_unlinked_age_seconds',
          'Age of the oldest entry of the audit log that is not in its hash chain; 0 when every entry is.',
        ),
      },
    },
    {
      text: erasureLimitSql,
      gauges: {
        used: gauge(
          'org_api_erasure_limit_used_ratio',
          'Families that the platform erased in 24 hours, as a share of its limit. Alert above a half.',
        ),
      },
    },
  ];

  async function measure(): Promise<void> {
    for (const { text, gauges } of states) {
      try {
        const [row] = await db.query<Record<string, number>>(CompiledQuery.raw(text));
        for (const [column, one] of Object.entries(gauges)) one.set(row?.[column] ?? 0);
      } catch (cause) {
        for (const one of Object.values(gauges)) one.remove(); // unknown is not 0
        onError(cause);
      }
    }
  }

  return new IntervalLoop({ run: measure, everyMs, onError });
}
