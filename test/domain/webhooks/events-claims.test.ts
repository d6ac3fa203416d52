import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { admitAttemptSql, recordOutcomeSql } from '#domain/db/statements/attempts.ts';
import { claimDeliveriesSql, recordStartedSql } from '#domain/db/statements/claim-deliveries.ts';
import { beginRoundSql } from '#test/begin-round.ts';
import { claimValues } from '#test/claim.ts';
import type { ClaimedDelivery } from '../../../apps/worker/relay/claimed-delivery.ts';
import { openPool, setupWebhooks } from './webhook-rows.ts';

/**
 * An organization with `events` events and its webhook, and the relay's statements over the
 * worker's login.
 */
async function setupClaims(events: number, ramp: number | null = null) {
  const world = await setupWebhooks();
  const orgId = await world.make.organization();
  const webhookId = await world.rows.webhook({ orgId, ramp });
  await world.rows.grants(orgId, events);
  const worker = openPool(world.database.urls.worker, 8);

  return {
    ...world,
    orgId,
    webhookId,
    worker,
    async claim(prompt = 200, slow = 200, leaseSeconds = 15) {
      const values = await claimValues(worker, { prompt, slow, leaseSeconds });
      const { rows } = await worker.query<ClaimedDelivery>(claimDeliveriesSql, values);
      return rows;
    },
    async recordStarted(claimed: ClaimedDelivery[]) {
      const columns = (['organizationId', 'webhookId', 'eventId', 'round'] as const).map((name) =>
        claimed.map((delivery) => delivery[name]),
      );
      await worker.query(recordStartedSql, columns);
    },
    /** Settles deliveries as if their attempts had succeeded. */
    async settle(claimed: ClaimedDelivery[]) {
      await world.pool.query(
        `update delivery set state = 'delivered', next_attempt_at = null, settled_at = now(), claimed = false
         where (webhook_id, event_id) in (select * from unnest($1::uuid[], $2::uuid[]))`,
        [claimed.map(({ webhookId }) => webhookId), claimed.map(({ eventId }) => eventId)],
      );
    },
  };
}

describe('claiming deliveries', () => {
  it('takes the oldest first, ten of a webhook, and no more until a slot is free', async () => {
    const { claim, settle, recordStarted, rows, webhookId } = await setupClaims(25);
    const inOrder = (await rows.deliveries(webhookId)).map(({ event_id }) => event_id);

    const first = await claim();
    await recordStarted(first);
    expect(first.map(({ eventId }) => eventId).sort()).toEqual(inOrder.slice(0, 10).sort());
    expect(first[0]).toMatchObject({ webhookId, round: 1, slow: false });
    expect(await claim()).toEqual([]);

    await settle(first.slice(0, 3));
    const second = await claim();
    expect(second.map(({ eventId }) => eventId).sort()).toEqual(inOrder.slice(10, 13).sort());
    const numbers = (await rows.deliveries(webhookId)).map(({ sequence }) => sequence);
    expect(numbers).toEqual([...Array.from({ length: 13 }, (_, index) => index + 1), ...Array(12).fill(null)]);
  });

  it('starts no new delivery of a webhook while its retries are due', async () => {
    const { claim, settle, recordStarted, pool } = await setupClaims(25);
    const first = await claim();
    await recordStarted(first);
    const waitFor = (claimed: ClaimedDelivery[], seconds: number) =>
      pool.query(
        `update delivery set claimed = false, attempts = 1, next_attempt_at = clock_timestamp() + make_interval(secs
          => $2) where event_id = any ($1)`,
        [claimed.map(({ eventId }) => eventId), seconds],
      );
    await waitFor(first, 60); // they have failed, and wait
    const second = await claim();
    expect(second).toHaveLength(10);
    await recordStarted(second);
    await settle(second);

    await waitFor(first, -1);
    expect(await claim()).toEqual([]);
    await waitFor(first.slice(0, 4), 60);
    expect(await claim()).toHaveLength(4);
  });

  it('gives the next slot at a host to the webhook without one, before those with an older backlog', async () => {
    const { claim, settle, rows, orgId } = await setupClaims(0);
    await rows.webhook({ orgId });
    await rows.grants(orgId, 15);
    const first = await claim();
    expect(first).toHaveLength(20); // all slots at their host
    const quiet = await rows.webhook({ orgId });
    await rows.grants(orgId, 1);
    expect(await claim()).toEqual([]);
    await settle(first.slice(0, 1));
    expect(await claim()).toMatchObject([{ webhookId: quiet }]);
  });

  it('takes as many as the ramp of a resumed webhook allows', async () => {
    const { claim } = await setupClaims(12, 4);
    expect(await claim()).toHaveLength(4);
    expect(await claim()).toEqual([]);
  });

  it('takes one of a failing webhook, and ten again after its next 2xx', async () => {
    const { claim, pool, webhookId } = await setupClaims(12);
    await pool.query('update webhook set failing_since = now() where id = $1', [webhookId]);
    expect(await claim()).toHaveLength(1);
    expect(await claim()).toEqual([]);

    await pool.query('update webhook set failing_since = null where id = $1', [webhookId]);
    expect(await claim()).toHaveLength(9);
    expect(await claim()).toEqual([]);
  });

  it('skips parked webhooks, and reports which are failing', async () => {
    const { claim, pool, webhookId } = await setupClaims(2);
    await pool.query(`update webhook set state = 'parked', parked_reason = 'failing' where id = $1`, [webhookId]);
    expect(await claim()).toEqual([]);

    await pool.query(`update webhook set state = 'active', parked_reason = null, failing_since = now() where id = $1`, [
      webhookId,
    ]);
    expect(await claim()).toMatchObject([{ slow: true }]);
  });

  it('returns the requested number, and takes from organizations in turn whatever their backlog', async () => {
    const { claim, make, rows, orgId } = await setupClaims(11);
    const other = await make.organization();
    await rows.webhook({ orgId: other });
    await rows.webhook({ orgId: other });
    await rows.grants(other, 1);

    const claims = [await claim(1), await claim(2), await claim(8), await claim(8)];
    expect(claims.map(({ length }) => length)).toEqual([1, 2, 8, 1]);
    expect(new Set(claims[1]?.map(({ organizationId }) => organizationId))).toEqual(new Set([orgId, other]));
    expect(await claim(0, 8)).toEqual([]); // no webhook is slow
  });

  it.each([
    { what: '50 of an organization', hosts: 8, change: '', bound: 50 },
    { what: '20 of an organization at one host', hosts: 1, change: '', bound: 20 },
    { what: '5 of an organization whose receivers are slow', hosts: 8, change: ', slow_since = now()', bound: 5 },
    { what: '5 of an organization whose receivers fail', hosts: 8, change: ', failing_since = now()', bound: 5 },
  ])(
    'takes no more than $what, from every webhook some, and leaves the others their slots',
    async ({ hosts, change, bound }) => {
      const { claim, make, rows, pool, orgId } = await setupClaims(0);
      for (let nth = 1; nth <= 7; nth += 1) await rows.webhook({ orgId });
      await rows.grants(orgId, 10);
      const other = await make.organization();
      await rows.webhook({ orgId: other });
      await rows.grants(other, 2);
      await pool.query(
        `update webhook w set url = 'https://receiver-' || (n.nth % $1) || '.example:8443/hooks' ${change}
         from (select id, row_number() over () as nth from webhook where organization_id = $2) n where n.id = w.id`,
        [hosts, orgId],
      );

      const claimed = await claim();

      const own = claimed.filter(({ organizationId }) => organizationId === orgId);
      expect(own).toHaveLength(bound);
      expect(new Set(own.map(({ webhookId }) => webhookId)).size).toBe(Math.min(8, bound));
      expect(claimed).toHaveLength(bound + 2);
      expect(await claim()).toEqual([]);
    },
  );

  it('numbers each webhook’s events without gap or repetition, and keeps to ten slots, with six parallel relays', async () => {
    const { claim, settle, rows, make, orgId, webhookId, pool } = await setupClaims(60);
    const others = [await rows.webhook({ orgId }), await rows.webhook({ orgId })];
    const professional = await make.member({ orgId });
    for (let made = 0; made < 60; made += 1) await make.grant({ professional });
    let most = 0;
    let left = 60 + 60 * 3;

    const relay = async () => {
      while (left > 0) {
        const claimed = await claim();
        const { rows: taken } = await pool.query<{ most: number }>(
          'select coalesce(max(n), 0)::int as most from (select count(*) as n from delivery where ' +
            'claimed group by webhook_id) c',
        );
        most = Math.max(most, taken[0]?.most ?? 0);
        await settle(claimed);
        left -= claimed.length;
      }
    };
    await Promise.all(Array.from({ length: 6 }, relay));

    expect(left).toBe(0); // none was claimed twice
    expect(most).toBeLessThanOrEqual(10);
    for (const [id, count] of [[webhookId, 120], ...others.map((other) => [other, 60])] as [string, number][]) {
      const numbers = (await rows.deliveries(id)).map(({ sequence }) => sequence);
      expect(numbers).toEqual(Array.from({ length: count }, (_, index) => index + 1)); // in order, too
    }
  });

  it('gives another relay what a relay left behind when its lease has expired, with the same number', async () => {
    const { claim, rows, webhookId, pool } = await setupClaims(3);
    const first = await claim();
    expect(await claim()).toEqual([]); // leased

    await pool.query(`update delivery set leased_until = now() - interval '1 second'`);
    const again = await claim();

    expect(again.map(({ eventId }) => eventId).sort()).toEqual(first.map(({ eventId }) => eventId).sort());
    expect((await rows.deliveries(webhookId)).map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
  });

  it('claims a new round once, with its old number, and the started round no more', async () => {
    const { claim, recordStarted, rows, webhookId, worker, orgId } = await setupClaims(1);
    const [delivery] = await claim();
    if (delivery === undefined) throw new Error('nothing was claimed');
    await recordStarted([delivery]);
    expect(await claim()).toEqual([]);

    const round = [orgId, webhookId, delivery.eventId, 1];
    const begun = await Promise.all([worker.query(beginRoundSql, round), worker.query(beginRoundSql, round)]);
    expect(begun.map(({ rowCount }) => rowCount).sort()).toEqual([0, 1]);
    await recordStarted([delivery]); // a late result of the old round changes nothing

    expect(await claim()).toMatchObject([{ eventId: delivery.eventId, round: 2 }]);
    expect(await rows.deliveries(webhookId)).toMatchObject([{ sequence: 1, round: 2, started: false }]);
  });

  it('is recorded as started by the admission of its first attempt, and not a second time by the relay', async () => {
    const { claim, recordStarted, pool, webhookId, worker, orgId } = await setupClaims(2);
    const [admitted, waiting] = await claim();
    if (admitted === undefined || waiting === undefined) throw new Error('less was claimed');
    await worker.query(admitAttemptSql, [orgId, webhookId, admitted.eventId, 1, false, true, randomUUID()]);
    const read = async ({ eventId }: ClaimedDelivery) => {
      const { rows } = await pool.query(
        'select started, leased_until, ctid::text as version from delivery where event_id = $1',
        [eventId],
      );
      return rows[0];
    };
    const afterAdmission = await read(admitted);
    expect(afterAdmission).toMatchObject({ started: true, leased_until: null });
    await recordStarted([admitted, waiting]);
    expect(await read(admitted)).toEqual(afterAdmission);
    expect(await read(waiting)).toMatchObject({ started: true, leased_until: null });
  });

  // Regression: the event had no number, so the webhook's numbers had a gap.
  it('is numbered by the admission of its first attempt when PostgreSQL forgot the claim', async () => {
    const { claim, pool, rows, webhookId, worker, orgId } = await setupClaims(2);
    const [delivery, other] = await claim();
    if (delivery === undefined || other === undefined) throw new Error('two deliveries were not claimed');
    await pool.query('update delivery set sequence = null, claimed = false, leased_until = null');
    await pool.query('update webhook set next_sequence = 1');
    const admit = async (eventId: string) => {
      const values = [orgId, webhookId, eventId, 1, false, true, randomUUID()];
      return (await worker.query<{ sequence: string | null }>(admitAttemptSql, values)).rows[0]?.sequence;
    };
    expect(await admit(delivery.eventId)).toBe('1');
    expect(await claim()).toMatchObject([{ eventId: other.eventId, round: 1 }]);
    expect(await admit(other.eventId)).toBe('2');
    const numbers = (await rows.deliveries(webhookId)).map(({ sequence }) => sequence);
    expect(numbers.sort()).toEqual([1, 2]);
  });

  // Regression: as above, when the admission was forgotten too.
  it.each([
    ['delivered', [204, 'accepted']],
    ['exhausted', [500, 'status']],
  ])('is numbered by the outcome that settles it as %s when PostgreSQL forgot all before', async (state, answer) => {
    const { claim, pool, rows, webhookId, worker, orgId } = await setupClaims(2);
    const [delivery] = await claim();
    if (delivery === undefined) throw new Error('nothing was claimed');
    await pool.query('update delivery set sequence = null, claimed = false, leased_until = null');
    await pool.query('update webhook set next_sequence = 1');
    const forgotten = [new Date().toISOString(), 1, true, []];
    const values = [orgId, webhookId, delivery.eventId, 1, ...answer, null, '{}', '127.0.0.1', 0, null, state, null];
    for (let times = 0; times < 2; times += 1)
      await worker.query(recordOutcomeSql, [...values, true, '{}', ...forgotten]);
    const settled = (await rows.deliveries(webhookId)).filter((row) => row.state === state);
    expect(settled).toMatchObject([{ event_id: delivery.eventId, sequence: 1 }]);
    expect((await claim()).length).toBe(1);
    const numbers = (await rows.deliveries(webhookId)).map(({ sequence }) => sequence);
    expect(numbers.sort()).toEqual([1, 2]);
  });

  // Regression: the relay records a start up to a second later, when the claim may be forgotten.
  it('is claimed and numbered again when PostgreSQL forgot the claim before its start was recorded', async () => {
    const { claim, recordStarted, pool, rows, webhookId } = await setupClaims(1);
    const first = await claim();
    await pool.query('update delivery set sequence = null, claimed = false, leased_until = null');
    await pool.query('update webhook set next_sequence = 1');
    await recordStarted(first);
    expect(await claim()).toMatchObject([{ eventId: first[0]?.eventId, round: 1 }]);
    expect(await rows.deliveries(webhookId)).toMatchObject([{ sequence: 1 }]);
  });
});
