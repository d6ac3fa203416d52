import type { Pool } from 'pg';
import { attemptsSql } from '#test/attempts-sql.ts';

/**
 * Inserts deliveries of a webhook that were exhausted in the past, each with its event and the
 * attempt that proves it. The events, and their ids, are of `count` consecutive seconds.
 */
export async function insertExhausted(
  pool: Pool,
  fields: { organizationId: string; webhookId: string; count: number },
): Promise<void> {
  await pool.query(
    `with made as (
       select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0')
         || substr(replace(new_id()::text, '-', ''), 13))::uuid as id, at
       from (select now() - make_interval(secs => $3 + 60 - n) as at from generate_series(1, $3::integer) n) t
     ), event as (
       insert into event (organization_id, id, type, created_at, body, delivery_count)
       select $1, m.id, 'client.started', m.at, format('{"id":"%s","type":"client.started"}', m.id), 1 from made m
     ), delivery as (
       insert into delivery (organization_id, webhook_id, event_id, state, run, failures, attempts,
         created_at, settled_at)
       select $1, $2, m.id, 'exhausted', 1, 1, 1, m.at, m.at from made m
     )
     ${attemptsSql({ from: 'made', endsSchedule: 'true', status: '500' })}`,
    [fields.organizationId, fields.webhookId, fields.count],
  );
}
