import type { Database } from '#domain/db/database.ts';
import { attemptsSql } from '#test/attempts-sql.ts';
import type { Scene } from '../security/console/scene.ts';

/**
 * Adds many rows to a scene, so that its pages run statements up to their bounds: entries of the
 * log with sums of calls, deliveries with an attempt each, members, and grants with seats.
 */
export async function addManyRows({ pool }: Database, scene: Scene): Promise<void> {
  const { orgId, owner, key, memberKey, webhook } = scene;
  await pool.query(
    `insert into audit_entry (id, at, organization_id, person_id, key_id, action, status, code, address)
     select new_id(), now() - n * interval '2 minutes', $1, $2,
       case when n % 50 > 0 then (array[$3::uuid, $4::uuid])[n % 2 + 1] end,
       case when n % 50 > 0 then 'api.getOrg' else 'role.change' end,
       case when n % 50 > 0 then case when n % 20 = 3 then 403 else 200 end end,
       case when n % 20 = 3 and n % 50 > 0 then 'forbidden' end, inet '198.51.100.0' + n % 200
     from generate_series(1, 20000) n`,
    [orgId, owner.personId, key.id, memberKey.id],
  );
  await pool.query(
    `insert into call_sum (organization_id, unit, starts_at, key_id, action, status, code, calls)
     select $1, unit, date_trunc(unit, now(), 'UTC') - n * ('1 ' || unit)::interval, key_id, 'api.getOrg', status, '', 7
     from unnest(array['hour', 'day']) unit, generate_series(0, 89) n, unnest($2::uuid[]) key_id,
       unnest(array[200, 304]) status`,
    [orgId, [key.id, memberKey.id]],
  );
  await pool.query(
    `with made as (
       select new_id() as id, now() - n * interval '5 minutes' as at, n from generate_series(1, 5000) n
     ), events as (
       insert into event (organization_id, id, type, created_at, body, delivery_count)
       select $1::uuid, id, 'client.started', at, '{}', 1 from made
     ), deliveries as (
       insert into delivery (organization_id, webhook_id, event_id, state, attempts, sequence, created_at, settled_at,
         run)
       select $1::uuid, $2::uuid, id, 'delivered', 1, 1000 + n, at, at + interval '1 second', 1 from made
     )
     ${attemptsSql({ from: 'made', status: '200', finishedAt: "at + interval '200 milliseconds'" })}`,
    [orgId, webhook.id],
  );
  await pool.query(
    `with people as (
       insert into person (id) select 'usr_' || n || '_' || $1::text from generate_series(1, 300) n returning id
     )
     insert into membership (organization_id, person_id, name, email, status)
     select $1::uuid, id, 'Member ' || id, id || '@example.org', 'active' from people`,
    [orgId],
  );
}
