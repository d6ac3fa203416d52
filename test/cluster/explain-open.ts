import type { Pool } from 'pg';
import type { Cluster } from './cluster.ts';
import type { Release } from './release.ts';

/**
 * Why deliveries of a region may still be open, for an engineer: counts of each webhook, its
 * receiver's row, and the last lines of its workers. It must be called while they run.
 */
export async function explainOpen(cluster: Cluster, { pool, release }: { pool: Pool; release: Release }) {
  const { rows } = await pool.query<Record<string, unknown>>(
    `select d.webhook_id, d.state, d.failures, count(*)::int as deliveries, min(d.due_at - now())::text as first_due,
            max(d.due_at - now())::text as last_due, r.concurrency, (now() - r.failing_since)::text as failing_for,
            r.exhausted_in_row, (r.retry_after_until - now())::text as retry_after, r.gone_at,
            (select count(*)::int from delivery_attempt a where a.organization_id = d.organization_id
               and a.webhook_id = d.webhook_id and a.finished_at is null) as unfinished,
            (select max(a.started_at)::text from delivery_attempt a where a.organization_id = d.organization_id
               and a.webhook_id = d.webhook_id) as last_attempt
       from delivery d join receiver r on r.organization_id = d.organization_id and r.webhook_id = d.webhook_id
      where d.settled_at is null
      group by d.organization_id, d.webhook_id, d.state, d.failures, r.organization_id, r.webhook_id
      order by d.webhook_id, d.state, d.failures`,
  );
  const { name, namespace } = release;
  const selector = `app.kubernetes.io/instance=${name},app.kubernetes.io/component=worker`;
  const options = ['--tail=40', '--prefix', '--ignore-errors', '--max-log-requests=20'];
  const pods = await cluster.kubectl(['get', 'pods', '-n', namespace, '-l', selector, '-o', 'wide']).catch(String);
  const log = await cluster.kubectl(['logs', '-n', namespace, '-l', selector, ...options]).catch(String);
  return [...rows.map((row) => JSON.stringify(row)), pods, log].join('\n');
}
