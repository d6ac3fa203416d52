import { randomUUID } from 'node:crypto';
import pg, { type Pool } from 'pg';
import { onTestFinished } from 'vitest';
import { changeTypes, type EventType } from '#domain/contract/events.ts';
import type { Database } from '#domain/db/database.ts';
import { openDatabase } from '#domain/open-database.ts';
import type { WebhookState } from '#domain/webhooks/webhook.entity.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { attemptsSql } from './attempts-sql.ts';
import { setupDatabase } from './setup.ts';

/** A row of `delivery`, with the columns that tests read. */
export interface DeliveryRow {
  webhook_id: string;
  event_id: string;
  state: string;
  run: number;
  attempts: number;
  sequence: number | null;
  due_in_seconds: number | null;
  settled_at: string | null;
}

export interface EventRow {
  id: string;
  type: string;
  body: string;
  created_at: Date;
  deliveryCount: number;
}

/**
 * A new database with rows of webhooks. They are written directly, because the tests judge
 * statements below the domain's functions.
 */
export async function setupWebhooks() {
  const { database, owner, make } = await setupDatabase();
  const { pool } = owner;

  const rows = {
    /** Inserts a webhook with one secret; active and subscribed to every type by default. */
    async webhook(fields: { orgId: string; eventTypes?: readonly EventType[]; state?: WebhookState }): Promise<string> {
      const { orgId, eventTypes: types = changeTypes, state = 'active' } = fields;
      const id = randomUUID();
      await pool.query(
        `insert into webhook (organization_id, id, url, event_types, state, suspended_reason, number)
         values ($1, $2, 'https://receiver.example/hooks', $3, $4, case $4 when 'suspended' then 'failures' end,
           case when $4 <> 'deleted' then (select coalesce(max(number), 0) + 1 from webhook
             where organization_id = $1) end)`,
        [orgId, id, types, state],
      );
      await pool.query('insert into webhook_secret (organization_id, webhook_id, sealed) values ($1, $2, $3)', [
        orgId,
        id,
        Buffer.from('sealed'),
      ]);
      return id;
    },

    /** Inserts events of `count` new grants, each in a separate transaction, oldest first. */
    async grants(orgId: string, count: number): Promise<void> {
      const professional = await make.member({ orgId });
      for (let made = 0; made < count; made += 1) await make.grant({ professional });
    },

    async events(orgId: string): Promise<EventRow[]> {
      const found = await pool.query<EventRow>(
        `select e.id, e.type, e.body, e.created_at, e.delivery_count as "deliveryCount" from event e
         left join lateral (select min(d.created_at) as at from delivery d
           where d.organization_id = e.organization_id and d.event_id = e.id) d on true
         where e.organization_id = $1 order by coalesce(d.at, e.created_at), e.id`,
        [orgId],
      );
      return found.rows.map((row) => ({ ...row, created_at: new Date(row.created_at) }));
    },

    async deliveries(webhookId: string): Promise<DeliveryRow[]> {
      const found = await pool.query<DeliveryRow>(
        `select webhook_id, event_id, state, run, attempts, sequence::int, settled_at,
           extract(epoch from due_at - clock_timestamp())::float8 as due_in_seconds
         from delivery where webhook_id = $1 order by created_at, event_id`,
        [webhookId],
      );
      return found.rows;
    },
  };

  return {
    database,
    owner,
    pool,
    make,
    rows,
    connect: (url: string) => connect(url),
    /** A connection of the owner with the rights of the import, which writes tables. */
    async connectAsImport() {
      const client = await connect(database.ownerUrl);
      await client.query('set role org_api_import');
      return client;
    },
  };
}

/** One connection, closed when the test ends. */
async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  onTestFinished(() => client.end().catch(() => {}));
  return client;
}

/**
 * A pool of `max` connections as one login, closed when the test ends. `end` resolves before its
 * connections are closed, so the drop of the database may end one, which the pool then reports.
 */
export function openPool(url: string, max: number): Pool {
  const pool = new pg.Pool({ connectionString: url, max });
  pool.on('error', () => {});
  onTestFinished(() => pool.end());
  return pool;
}

/** Opens the database with a login, as an app does, until the test ends. */
export async function openAs(url: string, poolMax: number): Promise<Database> {
  const database = await openDatabase({ server: parsePostgresUrl(url), applicationName: 'test', poolMax });
  onTestFinished(() => database.close());
  return database;
}

/**
 * Inserts deliveries of a webhook that were delivered 91 days ago, each with its event, its attempt
 * and its counted change.
 */
export async function insertSettled(pool: Pool, { orgId, id }: { orgId: string; id: string }, count: number) {
  await pool.query(
    `with made as (select new_id() as id, now() - interval '91 days' as at from generate_series(1, $3::integer)), e as (
       insert into event (organization_id, id, type, created_at, body, delivery_count)
       select $1, m.id, 'seat.given', m.at, '{}', 1 from made m returning id, created_at
     ), d as (
       insert into delivery (organization_id, webhook_id, event_id, state, run, attempts, created_at, settled_at)
       select $1, $2, id, 'delivered', 1, 1, created_at, created_at from e returning event_id, created_at
     ), c as (
       insert into ledger_count (organization_id, changes) values ($1, $3)
     )
     ${attemptsSql({ from: 'd', event: 'event_id', startedAt: 'created_at' })}`,
    [orgId, id, count],
  );
}
