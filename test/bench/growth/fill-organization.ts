import { randomUUID } from 'node:crypto';
import { generateSync } from 'otplib';
import type pg from 'pg';
import type { Database } from '#domain/db/database.ts';
import { completeEnrolment, setEnrolmentPassword, startEnrolmentTotp } from '#domain/identity/accept-link.ts';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { confirmSignInByAddress } from '#domain/identity/orgctl-actions.ts';
import { createKey } from '#domain/keys/create.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import { attemptsSql } from '#test/attempts-sql.ts';
import type { ConsoleConfig } from '../../../apps/console/config.ts';

/**
 * A measured organization: 25 keys, 40 members, a webhook, and the given numbers of audit entries
 * and deliveries.
 */
export interface FilledOrganization {
  id: string;
  /** A key with a 25th of the rows. */
  keyId: string;
  personId: string;
  webhookId: string;
  /** A row and a delivery in the middle of their lists. */
  line: { id: string; at: string };
  eventId: string;
}

const keysEach = 25;
const membersEach = 40;
const personId = 'usr_bench';
const email = 'bench@example.org';
const ownerRole = '0a1f0000-0000-7000-8000-000000000001';

/**
 * Number of past months over which rows are spread; the schema creates partitions only from now on.
 */
const pastMonths = 12;

/**
 * Creates the log's partitions of past months, as an installation of that age has them, and the
 * person whose session requests the pages.
 */
export async function preparePast(owner: pg.Client): Promise<void> {
  for (let month = 1; month <= pastMonths; month += 1)
    await owner.query(`do $$
      declare first timestamp := date_trunc('month', now() at time zone 'UTC') - interval '${month} months';
      begin
        execute format('create table audit_entry_%s partition of audit_entry for values from (%L) to (%L)',
          to_char(first, 'YYYY_MM'), first at time zone 'UTC', (first + interval '1 month') at time zone 'UTC');
      end $$`);
  await owner.query('insert into person (id) values ($1)', [personId]);
}

/**
 * Fills one organization. Three tenths of its audit entries are of the last 24 hours and the rest
 * of the past year. 1 in 200 is an error response, 1 in 500 an action, 1 in 10,000 a rare read.
 */
export async function fillOrganization(
  owner: pg.Client,
  database: Database,
  config: ConsoleConfig,
  size: { lines: number; deliveries: number },
): Promise<FilledOrganization> {
  const id = randomUUID();
  await owner.query(
    `insert into organization (id, name, slug, kind, status) values ($1, 'Bench', $2, 'law_firm', 'active')`,
    [id, `bench-${id}`],
  );
  await owner.query('insert into seat_plan (organization_id, invoiced) values ($1, 0)', [id]);
  await owner.query(
    `with people as (
      insert into person (id) select 'usr_' || n || '_' || $1 from generate_series(1, $2::int) n returning id
    )
    insert into membership (organization_id, person_id, name, email, status)
    select $1::uuid, id, 'Member ' || id, id || '@example.org', 'active' from people
    union all select $1::uuid, $3, 'Bench', $4, 'active'`,
    [id, membersEach, personId, email],
  );
  await owner.query('insert into membership_role (organization_id, person_id, role_id) values ($1, $2, $3)', [
    id,
    personId,
    ownerRole,
  ]);
  const keys: string[] = [];
  for (let n = 0; n < keysEach; n += 1) {
    const input = {
      organizationId: id,
      by: 'orgctl', // its creator has no session yet
      creatorId: personId,
      scopes: ['org.read'],
      label: `Key ${n}`,
      expiresAt: null,
    } as const;
    keys.push((await createKey(database, input, config.keys)).id);
  }
  const webhook = await createWebhook(
    database,
    {
      organizationId: id,
      by: 'orgctl',
      url: 'https://hooks.example.com/x',
      eventTypes: ['client.started'],
      description: '',
    },
    { allow: config.webhookAllow, sealingKeys: config.factors.sealingKeys },
  );
  await fillLines(owner, id, keys, size.lines);
  await fillDeliveries(owner, id, webhook.id, size.deliveries);
  const middle = await owner.query<{ id: string; at: string }>(
    `select id, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at from audit_entry
     where organization_id = $1 order by at desc, id desc offset $2 limit 1`,
    [id, Math.floor(size.lines / 2)],
  );
  const event = await owner.query<{ id: string }>(
    'select event_id as id from delivery where organization_id = $1 order by event_id offset $2 limit 1',
    [id, Math.floor(size.deliveries / 2)],
  );
  return {
    id,
    keyId: keys[0] ?? '',
    personId: `usr_1_${id}`,
    webhookId: webhook.id,
    line: middle.rows[0] ?? { id: '', at: '' },
    eventId: event.rows[0]?.id ?? '',
  };
}

async function fillLines(owner: pg.Client, organizationId: string, keys: string[], lines: number): Promise<void> {
  await owner.query(
    `insert into audit_entry (id, at, organization_id, person_id, key_id, action, status, code, address)
     select new_id(), l.at, $1::uuid,
       case when l.is_action then 'usr_' || (n / 500 % $4 + 1) || '_' || $1::uuid else $5 end,
       case when not l.is_action then ($3::uuid[])[n % cardinality($3::uuid[]) + 1] end,
       case when l.is_action then 'role.change' when n % 10000 = 7 then 'api.getFirmOutcomes' else 'api.getOrg' end,
       case when l.is_action then null when n % 200 = 3 then 403 else 200 end,
       case when n % 200 = 3 and not l.is_action then 'forbidden' end, '203.0.113.7'
     from generate_series(1, $2::int) n cross join lateral (
       select n % 500 = 5 as is_action,
         now() - case when n <= $2::int * 0.3 then interval '23 hours' * (n / ($2::int * 0.3))
           else interval '1 day' + interval '330 days' * (n::float8 / $2::int) end as at
     ) l`,
    [organizationId, lines, keys, membersEach, personId],
  );
}

/**
 * Inserts events of the last 25 days with one delivery and one attempt each: 1 in 100 exhausted,
 * all others delivered. Their ids have the time of the event, as the database generates them.
 */
async function fillDeliveries(
  owner: pg.Client,
  organizationId: string,
  webhookId: string,
  deliveries: number,
): Promise<void> {
  await owner.query(
    `with made as (
       select overlay(gen_random_uuid()::text placing
         regexp_replace(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0'), '^(.{8})', '\\1-') || '-7'
           from 1 for 15)::uuid as id, at, n
       from generate_series(1, $3::int) n cross join lateral (select now() - interval '25 days' * (n::float8 /
         $3::int) as at) t
     ), events as (
       insert into event (organization_id, id, type, created_at, body, delivery_count)
         select $1::uuid, id, 'client.started', at, '{}', 1 from made
     ), deliveries as (
       insert into delivery (organization_id, webhook_id, event_id, state, attempts, sequence, created_at,
         settled_at, run)
       select $1::uuid, $2::uuid, id, case when n % 100 = 1 then 'exhausted'
         else 'delivered' end, 1, n, at, at + interval '1 second', 1 from made
     )
     ${attemptsSql({
       from: 'made',
       endsSchedule: 'n % 100 = 1',
       status: 'case when n % 100 = 1 then 500 else 200 end',
       finishedAt: "at + interval '200 milliseconds'",
     })}`,
    [organizationId, webhookId, deliveries],
  );
}

/**
 * Enrols the person who requests the pages, and makes them a member of every organization. Returns
 * their session's token.
 */
export async function signIn(
  database: Database,
  [organizationId, ...others]: [string, ...string[]],
  config: ConsoleConfig,
): Promise<string> {
  const db = database;
  const { factors } = config;
  const { token } = await createEnrolment(db, { organizationId, email, by: 'orgctl' });
  await setEnrolmentPassword(db, { token, password: randomUUID() });
  const { secret } = await startEnrolmentTotp(db, token, factors);
  const factor = { kind: 'totp', code: generateSync({ secret }), name: 'Bench' } as const;
  const visitor = { address: '127.0.0.1', userAgent: 'bench' };
  const done = await completeEnrolment(db, { token, factor, visitor }, factors);
  for (const each of others) await confirmSignInByAddress(db, { email, organizationId: each });
  return done.token;
}
