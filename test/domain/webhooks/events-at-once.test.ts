import { describe, expect, it } from 'vitest';
import { type ClaimedDelivery, claimDeliveriesSql } from '#delivery/sql/claim.ts';
import { openPool, setupWebhooks } from '#test/webhook-rows.ts';

describe('parallel writers, relays and people', () => {
  it('never deadlock, and lose no delivery', async () => {
    const { make, rows, database, pool } = await setupWebhooks();
    const professional = await make.member();
    const { orgId, userId } = professional;
    await pool.query('update seat_plan set invoiced = 1000 where organization_id = $1', [orgId]);
    const webhooks: string[] = [];
    for (let made = 0; made < 5; made += 1) webhooks.push(await rows.webhook({ orgId }));
    const owner = openPool(database.ownerUrl, 20);
    const worker = openPool(database.urls.worker, 3);
    const console = openPool(database.urls.console, 2);
    let writing = true;

    const writers = Array.from({ length: 20 }, async (_, writer) => {
      for (let turn = 0; turn < 3; turn += 1) {
        const client = await owner.connect();
        try {
          await client.query('begin');
          // Several families in one transaction, in an order that differs per writer.
          const families = await client.query<{ id: string }>(
            `insert into family (organization_id, id, name) select $1, gen_random_uuid(), 'F'
              from generate_series(1, 3) returning id`,
            [orgId],
          );
          const grants = await client.query<{ id: string; family_id: string }>(
            `insert into client_grant (organization_id, kind, professional_id, family_id, since)
             select $1, 'attorney', $2, f, now() from unnest($3::uuid[]) f returning id, family_id`,
            [orgId, userId, families.rows.map(({ id }) => id)],
          );
          await client.query(
            `insert into seat (organization_id, grant_id, family_id) select $1, g, f
              from unnest($2::uuid[], $3::uuid[]) as s (g, f)`,
            [orgId, grants.rows.map(({ id }) => id), grants.rows.map(({ family_id }) => family_id)],
          );
          await client.query(
            `update client_grant set status = 'ended', end_reason = 'moved', ends_at = now()
              where organization_id = $1 and id = any ($2)`,
            [orgId, grants.rows.slice(writer % 2).map(({ id }) => id)],
          );
          await client.query('commit');
        } finally {
          client.release();
        }
      }
    });
    const relays = Array.from({ length: 3 }, async () => {
      while (writing) {
        const { rows: claimed } = await worker.query<ClaimedDelivery>(claimDeliveriesSql, [
          webhooks.map(() => orgId),
          webhooks,
          200,
          200,
          10,
        ]);
        await worker.query(
          `with delivered as (
             update delivery set state = 'delivered', due_at = null, settled_at = now() where state = 'running'
               and (webhook_id, event_id) in (select * from unnest($1::uuid[], $2::uuid[]))
             returning webhook_id, event_id
           )
           delete from slot s using delivered d where s.webhook_id = d.webhook_id and s.event_id = d.event_id`,
          [claimed.map(({ webhookId }) => webhookId), claimed.map(({ eventId }) => eventId)],
        );
      }
    });
    const people = Array.from({ length: 2 }, async (_, person) => {
      for (let change = 0; writing; change += 1) {
        const webhookId = webhooks[(change + person) % webhooks.length];
        await console.query(`update webhook set description = $2, url = url || '/' where id = $1`, [
          webhookId,
          `change ${change}`,
        ]);
        await console.query(
          `update webhook set state = case state when 'active' then 'paused'
            else 'active' end, url = 'https://receiver.example/' where id = $1`,
          [webhookId],
        );
      }
    });

    const results = await Promise.allSettled(writers);
    writing = false;
    const others = await Promise.allSettled([...relays, ...people]);

    expect([...results, ...others].filter(({ status }) => status === 'rejected')).toEqual([]);
    const { rows: owed } = await pool.query(
      `select (select sum(delivery_count) from event)::int as counted, (select count(*)
        from delivery)::int as made, (select count(*) from event)::int as events`,
    );
    // 20 writers, 3 iterations: 3 starts and 3 seats, and the ends of 3 or 2 grants with their
    // seats.
    const events = 20 * 3 * 6 + 10 * 3 * (6 + 4);
    expect(owed).toEqual([{ counted: events * 5, made: events * 5, events }]);
  });
});
