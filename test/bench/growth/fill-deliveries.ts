import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { attemptsSql } from '#test/attempts-sql.ts';

export interface FilledWebhook {
  organizationId: string;
  webhookId: string;
}

/** Adds organizations with webhooks, each at a separate host. */
export async function addWebhooks(owner: pg.Client, organizations: number, each: number): Promise<FilledWebhook[]> {
  const webhooks: FilledWebhook[] = [];
  for (let index = 0; index < organizations; index += 1) {
    const organizationId = randomUUID();
    await owner.query(
      `insert into organization (id, name, slug, kind, status) values ($1, 'Bench', $2, 'law_firm', 'active')`,
      [organizationId, organizationId],
    );
    for (let number = 1; number <= each; number += 1) {
      const webhookId = randomUUID();
      await owner.query(
        `insert into webhook (organization_id, id, url, event_types, number)
         values ($1, $2, $3, '{client.started}', $4)`,
        [organizationId, webhookId, `https://${webhookId}.example.com/`, number],
      );
      webhooks.push({ organizationId, webhookId });
    }
  }
  return webhooks;
}

/** Ids as events of those times have them. */
const idAt = /* sql */ `(lpad(to_hex(floor(extract(epoch from m.moment) * 1000)::bigint), 12, '0')
  || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid`;

/**
 * Adds delivered deliveries with their events and attempts, spread evenly from `oldestDays` to
 * `newestDays` ago, all rolled up in the ledger. The ledger's triggers are off meanwhile, so its
 * sums do not count them.
 */
export async function addSettled(
  owner: pg.Client,
  webhook: FilledWebhook,
  { count, oldestDays, newestDays }: { count: number; oldestDays: number; newestDays: number },
): Promise<void> {
  await owner.query('begin');
  await owner.query(`set local session_replication_role = replica`);
  await owner.query(
    `with m as (
       select now() - make_interval(secs => 86400 * (
         $4::double precision + ($5::double precision - $4) * n::double precision / $3)) as moment
       from generate_series(1, $3::integer) n
     ), made as (
       select ${idAt} as id, m.moment from m
     ), e as (
       insert into event (organization_id, id, type, created_at, body, delivery_count, rolled_up)
       select $1, id, 'client.started', moment, repeat('x', 400), 1, true from made
     ), d as (
       insert into delivery
         (organization_id, webhook_id, event_id, state, attempts, run, created_at, settled_at, rolled_up)
       select $1, $2, id, 'delivered', 1, 1, moment, moment, true from made
     )
     ${attemptsSql({ from: 'made', startedAt: 'moment', response: "convert_to(repeat('y', 200), 'UTF8')" })}`,
    [webhook.organizationId, webhook.webhookId, count, newestDays, oldestDays],
  );
  await owner.query('commit');
}

/** Adds deliveries that are due now, with their events. */
export async function addDue(owner: pg.Client, webhook: FilledWebhook, count: number): Promise<void> {
  await owner.query(
    `with made as (select new_id() as id, clock_timestamp() as moment from generate_series(1, $3::integer)), e as (
       insert into event (organization_id, id, type, created_at, body, delivery_count)
       select $1, id, 'client.started', moment, repeat('x', 400), 1 from made
     )
     insert into delivery (organization_id, webhook_id, event_id, state, created_at, due_at)
     select $1, $2, id, 'queued', moment, moment from made`,
    [webhook.organizationId, webhook.webhookId, count],
  );
}
