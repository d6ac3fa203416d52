/**
 * The ledger's counters are independent of events and deliveries, so they reveal rows that were
 * deleted or never inserted.
 */

import { describe, expect, it } from 'vitest';
import { claimDeliveriesSql } from '#delivery/sql/claim.ts';
import { changeTypes } from '#domain/contract/events.ts';
import { listLedgerFaults, readLedger, rollUpLedger } from '#domain/webhooks/ledger.ts';
import { purgeDeliveriesSql } from '#domain/webhooks/retention.ts';
import { attemptsSql } from '#test/attempts-sql.ts';
import { openAs, setupWebhooks } from '#test/webhook-rows.ts';
import { causeEvent } from '../../../apps/receiver/listen/trigger.ts';

/**
 * An organization with two webhooks and six events. The first three of each webhook are claimed,
 * and so have numbers.
 */
async function setupCounts() {
  const world = await setupWebhooks();
  const { pool, database, make, rows } = world;
  const orgId = await make.organization();
  const webhooks = [await rows.webhook({ orgId }), await rows.webhook({ orgId })];
  await rows.grants(orgId, 6);
  const worker = await openAs(database.urls.worker, 2);
  for (const webhookId of webhooks) await worker.pool.query(claimDeliveriesSql, [[orgId], [webhookId], 3, 3, 10]);
  const events = (await rows.events(orgId)).map(({ id }) => id);
  return {
    ...world,
    orgId,
    webhooks,
    events,
    worker,
    unexplained: async () => (await readLedger(worker)).unexplained,
    rollUp: () => rollUpLedger(worker, { settledForSeconds: 0 }),
    faults: async () => (await listLedgerFaults(worker)).map(({ kind, webhookId }) => ({ kind, webhookId })),
    /** Deletes an event with its deliveries and attempts, as the owner can. */
    async deleteEvent(id: string | undefined): Promise<void> {
      for (const statement of [
        'delete from delivery_attempt where event_id = $1',
        'delete from delivery where event_id = $1',
        'delete from event where id = $1',
      ])
        await pool.query(statement, [id]);
    },
    settleAll: () =>
      pool.query(
        `with settled as (
           update delivery set state = 'delivered', due_at = null, settled_at = now() -
             interval '91 days', attempts = 1
           returning organization_id, webhook_id, event_id)
         ${attemptsSql({
           from: 'settled',
           organization: 'organization_id',
           webhook: 'webhook_id',
           event: 'event_id',
           startedAt: 'now()',
         })}`,
      ),
  };
}

it.each(changeTypes)(
  'a change that creates %s is counted on its own, so the ledger explains the event',
  async (type) => {
    const { owner, make } = await setupWebhooks();
    const { orgId } = await make.member();
    const caused = await causeEvent({ database: owner, organization: { id: orgId, name: 'Any' } }, type);

    const { rows } = await owner.pool.query<{ type: string }>('select type from event order by created_at, id');
    expect(rows.map((row) => row.type)).toEqual(expect.arrayContaining([type]));
    expect(rows).toHaveLength(caused.length);
    const { rows: counts } = await owner.pool.query('select sum(changes)::integer as changes from ledger_count');
    expect(counts).toEqual([{ changes: caused.length }]);
    expect((await readLedger(owner)).unexplained).toBe(0);
  },
);

describe('the independent counts of the ledger', () => {
  it('agree with changes of access and seats, claims, rolling up and retention', async () => {
    const t = await setupCounts();
    const professional = await t.make.member({ orgId: t.orgId });
    const grant = await t.make.grant({ professional });
    await t.make.seat({ orgId: t.orgId, grant });
    await t.pool.query(
      `update client_grant set status = 'ended', end_reason = 'moved', ends_at = now() where id = $1`,
      [grant.id],
    );
    expect(await t.unexplained()).toBe(0);
    await t.settleAll();
    expect(await t.unexplained()).toBe(0);
    expect(await t.rollUp()).toEqual({ deliveries: 20, events: 10 });
    expect(await t.unexplained()).toBe(0);
    for (const table of ['event', 'delivery'])
      await t.pool.query(`update ${table} set created_at = created_at - interval '91 days'`);
    await t.worker.pool.query(purgeDeliveriesSql, [90, 100]);
    expect((await t.pool.query('select from event')).rowCount).toBe(0);
    expect(await t.unexplained()).toBe(0);
    expect(await t.faults()).toEqual([]);
    await t.rollUp();
    expect(await t.unexplained()).toBe(0);
    const { rows } = await t.pool.query('select count(*)::int as count from ledger_count');
    expect(rows).toEqual([{ count: 3 }]); // one of the organization, one of each webhook
  });

  it('are folded by the worker, which can neither delete nor change a sum', async () => {
    const t = await setupCounts();
    await t.settleAll();
    await t.rollUp();
    const sums = async () => {
      const { rows } = await t.pool.query(
        `select (select count(*)::int from ledger_day) as days, (select sum(deliveries)::int from ledger_day) as made,
          (select count(*)::int from ledger_count) as counts, (select sum(changes)::int from ledger_count) as changes`,
      );
      return rows[0];
    };
    const before = await sums();
    expect(before).toEqual({ days: 1, made: 12, counts: 3, changes: 6 });
    for (const statement of [
      'delete from ledger_day',
      'update ledger_day set id = default',
      'update ledger_day set deliveries = 0',
      'delete from ledger_count',
      'update ledger_count set changes = 0',
    ])
      await expect(t.worker.pool.query(statement), statement).rejects.toMatchObject({ code: '42501' });
    await t.pool.query(
      `insert into ledger_day (day, deliveries) select day, n from ledger_day, (values (5), (-5)) v (n)`,
    );
    await t.pool.query(
      `insert into ledger_count (organization_id, webhook_id, changes)
        select organization_id, webhook_id, n from ledger_count, (values (5), (-5)) v (n)`,
    );
    expect(await sums()).toEqual({ ...before, days: 3, counts: 9 });
    await t.rollUp();
    expect(await sums()).toEqual(before);
  });

  it.each([{ isRolledUp: false }, { isRolledUp: true }])(
    'reveal an event that was deleted with all its deliveries (rolled up: $isRolledUp)',
    async ({ isRolledUp }) => {
      const t = await setupCounts();
      if (isRolledUp) {
        await t.settleAll();
        await t.rollUp();
      }
      await t.deleteEvent(t.events[0]);
      await t.deleteEvent(t.events.at(-1)); // was never claimed
      // The other parts of the ledger's comparison still agree.
      expect(await readLedger(t.worker)).toMatchObject({ difference: 0, missing: 0, surplus: 0, unexplained: 4 });
      expect(await t.faults()).toEqual(
        expect.arrayContaining([
          { kind: 'events_differ', webhookId: null },
          ...t.webhooks.map((webhookId) => ({ kind: 'numbers_differ', webhookId })),
        ]),
      );
    },
  );

  it.each([
    ['switched off', 'alter table client_grant disable trigger client_grant_started_event'],
    ['silenced for the session', `set session_replication_role = replica`],
  ])('reveal a change whose trigger was %s', async (_how, silence) => {
    const t = await setupCounts();
    const professional = await t.make.member({ orgId: t.orgId });
    const familyId = await t.make.family({ orgId: t.orgId });
    const owner = await t.connect(t.database.ownerUrl);
    const before = (await t.rows.events(t.orgId)).length;
    await owner.query(silence);
    await owner.query(
      `insert into client_grant (organization_id, kind, professional_id, family_id, since)
        values ($1, 'neutral', $2, $3, now())`,
      [t.orgId, professional.userId, familyId],
    );
    expect(await t.rows.events(t.orgId)).toHaveLength(before);
    expect(await readLedger(t.worker)).toMatchObject({ difference: 0, missing: 0, surplus: 0, unexplained: 1 });
    expect(await t.faults()).toEqual([{ kind: 'events_differ', webhookId: null }]);
  });

  it('reveal an event without a change', async () => {
    const t = await setupCounts();
    await t.pool.query(
      `insert into event (organization_id, id, type, created_at, body, delivery_count)
        values ($1, new_id(), 'seat.given', now(), '{}', 0)`,
      [t.orgId],
    );
    expect(await t.unexplained()).toBe(1);
  });

  it('ignore a silent backfill', async () => {
    const t = await setupCounts();
    const professional = await t.make.member({ orgId: t.orgId });
    const familyId = await t.make.family({ orgId: t.orgId });
    const owner = await t.connect(t.database.ownerUrl);
    await owner.query('grant insert, select, update on client_grant to org_api_backfill; set role org_api_backfill');
    await owner.query(
      `insert into client_grant (organization_id, kind, professional_id, family_id, since)
        values ($1, 'neutral', $2, $3, now())`,
      [t.orgId, professional.userId, familyId],
    );
    expect(await t.unexplained()).toBe(0);
  });
});
