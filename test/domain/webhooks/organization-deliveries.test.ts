/** The deliveries of all webhooks of an organization, in one list. */

import { sql } from 'kysely';
import { expect, it } from 'vitest';
import {
  type DeliveryFilter,
  type DeliveryRef,
  searchOrganizationDeliveries,
  searchScanLimit,
  searchSql,
} from '#domain/webhooks/search-deliveries.ts';
import { setupDatabase } from '#test/setup.ts';
import { type Plan, rowsRead } from './plans.ts';

const all: DeliveryFilter = { state: null, progress: null, type: null, eventId: null, from: null, to: null };
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);

/** Two webhooks of one organization, and one of another organization with a delivery. */
async function setupOrganization() {
  const { owner, make } = await setupDatabase();
  const [first, foreign] = [await make.webhook(), await make.webhook()];
  const second = await make.webhook({ orgId: first.orgId });
  await make.delivery({ webhook: foreign });
  const db = owner;
  const { orgId: organizationId } = first;
  const request = { organizationId, by: 'orgctl' } as const;
  return {
    make,
    db,
    pool: owner.pool,
    organizationId,
    webhooks: [first, second] as const,
    search: (filter: Partial<DeliveryFilter>, page: Partial<Parameters<typeof searchOrganizationDeliveries>[3]> = {}) =>
      searchOrganizationDeliveries(
        db,
        request,
        { ...all, ...filter },
        { before: null, atMost: 100, webhookId: null, ...page },
      ),
  };
}

const pickRefs = ({ deliveries }: { deliveries: DeliveryRef[] }) =>
  deliveries.map(({ eventId, webhookId }) => ({ eventId, webhookId }));

it('the list across webhooks shows each delivery of the organization once, newest first, page by page', async () => {
  const t = await setupOrganization();
  const made: DeliveryRef[] = [];
  for (let minutes = 14; minutes > 0; minutes -= 1) {
    const webhook = t.webhooks[minutes % 2 === 0 ? 0 : 1];
    const eventId = await t.make.delivery({ webhook, createdAt: minutesAgo(minutes) });
    made.unshift({ eventId, webhookId: webhook.id });
  }
  const seen: DeliveryRef[] = [];
  let before: DeliveryRef | null = null;
  do {
    const found = await t.search({}, { before, atMost: 3 });
    seen.push(...pickRefs(found));
    before = found.older;
  } while (before !== null);
  expect(seen).toEqual(made);
});

it('the list across webhooks shows an event once for each of its webhooks, also across a page’s end', async () => {
  const t = await setupOrganization();
  const [first, second] = t.webhooks;
  const eventId = await t.make.delivery({ webhook: first });
  await t.pool.query(
    `insert into delivery (organization_id, webhook_id, event_id, state, due_at, created_at)
     select organization_id, $2, event_id, 'queued', due_at, created_at from delivery where webhook_id = $1`,
    [first.id, second.id],
  );
  const page = await t.search({ eventId }, { atMost: 1 });
  const next = await t.search({ eventId }, { atMost: 1, before: page.older });
  const webhookIds = [...pickRefs(page), ...pickRefs(next)].map(({ webhookId }) => webhookId);
  expect(webhookIds).toEqual([first.id, second.id].sort().reverse());
  expect(next.older).toBeNull();
});

it('the list across webhooks is filtered by webhook, status, event type and time, deleted webhooks included', async () => {
  const t = await setupOrganization();
  const [first, second] = t.webhooks;
  const delivered = await t.make.delivery({
    webhook: first,
    state: 'delivered',
    createdAt: minutesAgo(30),
    attempts: [{ status: 200 }],
  });
  const failed = await t.make.delivery({
    webhook: second,
    state: 'exhausted',
    createdAt: minutesAgo(90),
    attempts: [{ status: 500, endsSchedule: true }],
  });
  const waiting = await t.make.delivery({ webhook: second, type: 'seat.given', createdAt: minutesAgo(5) });
  await t.pool.query(`update webhook set state = 'deleted', number = null where id = $1`, [first.id]);
  const searchIds = async (...input: Parameters<typeof t.search>) =>
    (await t.search(...input)).deliveries.map(({ eventId }) => eventId);
  expect(await searchIds({})).toEqual([waiting, delivered, failed]);
  expect(await searchIds({}, { webhookId: second.id })).toEqual([waiting, failed]);
  expect(await searchIds({ state: 'exhausted' })).toEqual([failed]);
  expect(await searchIds({ state: 'exhausted' }, { webhookId: first.id })).toEqual([]);
  expect(await searchIds({ state: 'delivered' })).toEqual([delivered]);
  expect(await searchIds({ state: 'waiting' })).toEqual([waiting]);
  expect(await searchIds({ state: 'held' })).toEqual([]);
  expect(await searchIds({ type: 'seat.given' })).toEqual([waiting]);
  expect(await searchIds({ from: minutesAgo(31), to: minutesAgo(29) })).toEqual([delivered]);
});

it('the list across webhooks requires the permission to manage webhooks', async () => {
  const t = await setupOrganization();
  const analyst = await t.make.member({ orgId: t.organizationId, permissions: ['org.read'] });
  const request = { organizationId: t.organizationId, by: { personId: analyst.userId } };
  const page = { before: null, atMost: 5, webhookId: null };
  await expect(searchOrganizationDeliveries(t.db, request, all, page)).rejects.toMatchObject({
    reason: 'may_not_manage_webhooks',
  });
});

it('a page of the list across webhooks reads a bounded number of rows of 60,000, whatever the filter and the page', {
  timeout: 60_000,
}, async () => {
  const t = await setupOrganization();
  const third = await t.make.webhook({ orgId: t.organizationId });
  const webhookIds = [...t.webhooks, third].map(({ id }) => id);
  // One of 1,000 failed; the oldest 50 wait.
  await t.pool.query(
    `with made as (
       select ('0190' || lpad(to_hex(n), 8, '0') || '70008000' || lpad('', 12, '0'))::uuid as id, n,
         now() - make_interval(secs => 30000 - n) as at from generate_series(1, 20000) n
     ), event as (
       insert into event (organization_id, id, type, created_at, body, delivery_count)
       select $1, id, 'client.started', at, '{}', 3 from made
     )
     insert into delivery (organization_id, webhook_id, event_id, state, attempts, created_at, settled_at,
       due_at)
     select $1, w.id, m.id, s.state, 1, m.at, case when s.state = 'queued' then null else m.at end,
       case when s.state = 'queued' then now() end
     from made m cross join unnest($2::uuid[]) w (id)
     cross join lateral (select case when m.n <= 50 then 'queued' when m.n % 1000 = 0 then 'exhausted'
       else 'delivered' end as state) s`,
    [t.organizationId, webhookIds],
  );
  const middle = await t.pool.query<{ id: string }>('select id from event order by id offset 10000 limit 1');
  const before = { eventId: middle.rows[0]?.id ?? '', webhookId: third.id };
  const atMost = 25;
  const read = async (filter: Partial<DeliveryFilter>, from: DeliveryRef | null = null) => {
    const { statement } = searchSql(
      { organizationId: t.organizationId, webhookId: null },
      { ...all, ...filter },
      { before: from, atMost },
    );
    const [row] = await t.db.query(
      sql<{ 'QUERY PLAN': [{ Plan: Plan }] }>`explain (analyze, costs off, timing off, format json) ${statement}`,
    );
    return row === undefined ? Number.NaN : rowsRead(row['QUERY PLAN'][0].Plan);
  };
  // A page and one more row, with webhook, event and attempt of each.
  const ofPage = (atMost + 1) * 10;
  const readPages = async () => ({
    newest: await read({}),
    deep: await read({}, before),
    event: await read({ eventId: before.eventId }),
    failed: await read({ state: 'exhausted' }),
    waiting: await read({ state: 'waiting' }),
    cancelled: await read({ state: 'cancelled' }),
  });
  const without = await readPages();
  await t.pool.query('analyze delivery, event, webhook');
  for (const [filter, rows] of [...Object.entries(without), ...Object.entries(await readPages())])
    expect([filter, rows < ofPage, rows]).toEqual([filter, true, rows]);
  // A search without an index reads a bounded number of rows, each with its event.
  expect(await read({ type: 'seat.given' })).toBeLessThan(searchScanLimit * 4);
  expect(await read({ state: 'delivered', type: 'seat.given' }, before)).toBeLessThan(searchScanLimit * 4);
});
