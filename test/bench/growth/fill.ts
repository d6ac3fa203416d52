import type pg from 'pg';
import { attemptsSql } from '#test/attempts-sql.ts';
import { organizations } from '../reads/region.ts';

/** Rows of one insert statement, so that progress is visible. */
const batchSize = 250_000;
/** Webhooks of each organization of the region. */
const webhooksEach = 2;

type Report = (line: string) => void;

/** Adds webhooks to every organization, each at a separate host. */
export async function fillWebhooks(owner: pg.Client): Promise<void> {
  await owner.query(
    `insert into webhook (organization_id, id, url, event_types, number)
     select o.id, md5(o.id || ' webhook ' || n)::uuid, 'https://' || o.slug || '-' || n || '.example.com/',
       '{client.started}', n
     from organization o, generate_series(1, $1::integer) n where o.slug like 'organization-%'`,
    [webhooksEach],
  );
}

/**
 * Spreads audit entries over all organizations and twelve months, and as many delivered events,
 * each with a delivery and an attempt, over 100 days. Triggers are off meanwhile: they cost
 * minutes, and no sum of the ledger is compared here.
 */
export async function fillRows(owner: pg.Client, rows: number, report: Report): Promise<void> {
  await owner.query(`set session_replication_role = replica; set work_mem = '256MB'`);
  await owner.query(
    `create temporary table place as
     select o.id as organization_id, row_number() over (order by o.id) - 1 as place,
       (select array_agg(k.id order by k.id) from api_key k where k.organization_id = o.id) as keys,
       (select array_agg(w.id order by w.id) from webhook w where w.organization_id = o.id) as webhooks
     from organization o where o.slug like 'organization-%'`,
  );
  await owner.query('create unique index on place (place); analyze place');
  for (let from = 0; from < rows; from += batchSize) {
    const batch = [from + 1, Math.min(from + batchSize, rows), rows, organizations];
    await owner.query(auditEntriesSql, batch);
    await owner.query(deliveriesSql, batch);
    if (from > 0 && (from / batchSize) % 4 === 0)
      report(`${from.toLocaleString('en')} of ${rows.toLocaleString('en')}`);
  }
  await owner.query('update receiver set next_sequence = $1', [rows + 1]);
  await owner.query('drop table place; reset work_mem; set session_replication_role = origin');
}

/** `$1` to `$2` of `$3` rows over `$4` organizations; 1 in 200 is an error response, 1 in 500 an action. */
const auditEntriesSql = `
  insert into audit_entry (id, at, organization_id, person_id, key_id, action, status, code, address)
  select new_id(), now() - interval '330 days' * (n::float8 / $3::float8), p.organization_id,
    case when n % 500 = 5 then 'person-1' end,
    case when n % 500 <> 5 then p.keys[n / $4::integer % cardinality(p.keys) + 1] end,
    case when n % 500 = 5 then 'role.change' when n % 10000 = 7 then 'api.getFirmOutcomes' else 'api.getOrg' end,
    case when n % 500 = 5 then null when n % 200 = 3 then 403 else 200 end,
    case when n % 200 = 3 then 'forbidden' end, '203.0.113.7'
  from generate_series($1::integer, $2::integer) n join place p on p.place = n % $4::integer`;

/** As `auditEntriesSql`. Event ids have the time of the event, as the database generates them. */
const deliveriesSql = `
  with made as materialized (
    select p.organization_id, p.webhooks[n / $4::integer % cardinality(p.webhooks) + 1] as webhook_id, t.at, n,
      (lpad(to_hex((extract(epoch from t.at) * 1000)::bigint), 12, '0') || '7'
        || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid as id
    from generate_series($1::integer, $2::integer) n join place p on p.place = n % $4::integer
    cross join lateral (select now() - interval '100 days' * (n::float8 / $3::float8) as at) t
  ), events as (
    insert into event (organization_id, id, type, created_at, body, delivery_count, rolled_up)
    select organization_id, id, 'client.started', at, '{}', 1, true from made
  ), deliveries as (
    insert into delivery (organization_id, webhook_id, event_id, state, attempts, sequence, created_at, settled_at,
      run, rolled_up)
    select organization_id, webhook_id, id, 'delivered', 1, n, at, at + interval '1 second', 1, true from made
  )
  ${attemptsSql({
    from: 'made',
    organization: 'organization_id',
    webhook: 'webhook_id',
    finishedAt: "at + interval '200 milliseconds'",
  })}`;

/** Adds due deliveries to each webhook of the organizations. */
export async function addDueDeliveries(owner: pg.Client, organizationIds: readonly string[], each: number) {
  await owner.query(
    `with made as (
       select w.organization_id, w.id as webhook_id, new_id() as id, clock_timestamp() as at
       from webhook w, generate_series(1, $2::integer) where w.organization_id = any ($1::uuid[])
     ), events as (
       insert into event (organization_id, id, type, created_at, body, delivery_count)
       select organization_id, id, 'client.started', at, '{}', 1 from made
     )
     insert into delivery (organization_id, webhook_id, event_id, state, created_at, due_at)
     select organization_id, webhook_id, id, 'queued', at, at from made`,
    [organizationIds, each],
  );
}
