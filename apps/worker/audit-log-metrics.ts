import { CompiledQuery } from 'kysely';
import type { Registry } from 'prom-client';
import { type AuditLogState, auditLogStateSql } from '#domain/audit-log/retention.ts';
import type { Queryable } from '#domain/db/database.ts';
import { IntervalLoop } from '#runtime/flow/interval-loop.ts';
import { metricsIn } from '#runtime/metrics.ts';

/**
 * Shows two states of the audit log that need a person. While they cannot be read, the figures
 * are absent, and the alerts fire on that.
 *
 * - The size of the default partition, where entries went whose month had none. It is a size and
 *   not a count: the worker may not read the log, and a table that never had an entry has 0 bytes.
 * - The age of the oldest entry that has no link in the hash chains.
 */
export function auditLogMetrics(
  db: Queryable,
  registry: Registry,
  { everyMs = 60_000, onError }: { everyMs?: number; onError: (cause: unknown) => void },
) {
  const { gauge } = metricsIn(registry);
  const size = gauge(
    'org_api_audit_log_default_partition_bytes',
    'Size of the audit log’s default partition. Alert when it is not 0: a month had no partition.',
  );
  const age = gauge(
    'org_api_audit_log_unlinked_age_seconds',
    'Age of the oldest entry of the audit log that is not in its hash chain; 0 when every entry is.',
  );

  async function measure(): Promise<void> {
    try {
      const [state] = await db.query<AuditLogState>(CompiledQuery.raw(auditLogStateSql));
      size.set(state?.defaultPartitionBytes ?? 0);
      age.set(state?.unlinkedAgeSeconds ?? 0);
    } catch (cause) {
      size.remove(); // unknown is not 0
      age.remove();
      throw cause;
    }
  }

  return new IntervalLoop({ run: measure, everyMs, onError });
}
