import { describe, expect, it } from 'vitest';
import { setupWebhooks } from '#test/webhook-rows.ts';

describe('the deliveries of an event', () => {
  it('are one for each webhook that subscribes to its type, and the event counts them', async () => {
    const { make, rows } = await setupWebhooks();
    const professional = await make.member();
    const { orgId } = professional;
    const everything = await rows.webhook({ orgId });
    const starts = await rows.webhook({ orgId, eventTypes: ['client.started'] });
    const seats = await rows.webhook({ orgId, eventTypes: ['seat.given', 'seat.ended'] });
    const elsewhere = await rows.webhook({ orgId: await make.organization() });

    const grant = await make.grant({ professional });
    await make.seat({ orgId, grant });

    const [started, given] = await rows.events(orgId);
    expect([started, given]).toMatchObject([
      { type: 'client.started', deliveryCount: 2 },
      { type: 'seat.given', deliveryCount: 2 },
    ]);
    const owed = async (webhookId: string) => (await rows.deliveries(webhookId)).map((delivery) => delivery.event_id);
    expect(await owed(everything)).toEqual([started?.id, given?.id]);
    expect(await owed(starts)).toEqual([started?.id]);
    expect(await owed(seats)).toEqual([given?.id]);
    expect(await owed(elsewhere)).toEqual([]);
  });

  it('wait and are due at once; those of a paused webhook are held; a deleted webhook has none', async () => {
    const { make, rows } = await setupWebhooks();
    const orgId = await make.organization();
    const active = await rows.webhook({ orgId });
    const paused = await rows.webhook({ orgId, state: 'paused' });
    const deleted = await rows.webhook({ orgId, state: 'deleted' });

    await rows.grants(orgId, 1);

    expect(await rows.deliveries(active)).toMatchObject([{ state: 'queued', run: 0, attempts: 0, sequence: null }]);
    expect((await rows.deliveries(active))[0]?.due_in_seconds).toBeLessThanOrEqual(0);
    expect(await rows.deliveries(paused)).toMatchObject([{ state: 'queued' }]);
    expect(await rows.deliveries(deleted)).toEqual([]);
    expect((await rows.events(orgId))[0]?.deliveryCount).toBe(2);
  });

  it('follow the subscriptions at the time of the event, and later changes add or remove none', async () => {
    const { make, rows, pool } = await setupWebhooks();
    const orgId = await make.organization();
    const early = await rows.webhook({ orgId, eventTypes: ['client.started'] });
    await rows.grants(orgId, 1);

    await pool.query(`update webhook set event_types = '{seat.given}' where id = $1`, [early]);
    const late = await rows.webhook({ orgId });
    await rows.grants(orgId, 1);

    expect(await rows.deliveries(early)).toHaveLength(1);
    expect(await rows.deliveries(late)).toHaveLength(1);
    expect((await rows.events(orgId)).map(({ deliveryCount }) => deliveryCount)).toEqual([1, 1]);
  });

  // A transaction that notifies holds a lock of the whole cluster until its commit is durable.
  it('send no notification, which would make every commit wait for the one before it', async () => {
    const { pool } = await setupWebhooks();
    const { rows } = await pool.query(
      `select p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where n.nspname not in ('pg_catalog', 'information_schema') and p.prosrc ~* '\\m(pg_)?notify\\M'`,
    );
    expect(rows).toEqual([]);
  });

  it('keep the order of changes within one millisecond', async () => {
    const { make, rows, pool } = await setupWebhooks();
    const professional = await make.member();
    const { orgId, userId } = professional;
    const webhookId = await rows.webhook({ orgId });
    const familyId = await make.family({ orgId });
    const { rows: made } = await pool.query<{ id: string }>(
      `insert into client_grant (organization_id, kind, professional_id, family_id, since)
       select $1, 'attorney', $2, $3, now() from generate_series(1, 200) returning id`,
      [orgId, userId, familyId],
    );

    const bodies = new Map((await rows.events(orgId)).map(({ id, body }) => [id, body]));
    const inOrder = (await rows.deliveries(webhookId)).map(({ event_id }) => {
      const { data } = JSON.parse(bodies.get(event_id) ?? '{}') as { data: { grantId: string } };
      return data.grantId;
    });
    expect(inOrder).toEqual(made.map(({ id }) => id));
  });

  it('of a seat wait for none of its grant, those of a grant for none of its seats, and each for its own', async () => {
    const { make, rows, pool } = await setupWebhooks();
    const professional = await make.member();
    const { orgId } = professional;
    const webhookId = await rows.webhook({ orgId });
    const grant = await make.grant({ professional });
    await make.seat({ orgId, grant });
    await pool.query(`update delivery set state = 'delivered', due_at = null, settled_at = now() where event_id in (
      select id from event where type = 'client.started')`);
    await pool.query(`update client_grant set status = 'ended', ends_at = now(), end_reason = 'ended' where id = $1`, [
      grant.id,
    ]);

    const types = new Map((await rows.events(orgId)).map(({ id, type }) => [id, type]));
    const states = (await rows.deliveries(webhookId)).map(({ event_id, state }) => [types.get(event_id), state]);
    expect(Object.fromEntries(states)).toEqual({
      'client.started': 'delivered',
      'seat.given': 'queued',
      'client.ended': 'queued',
      'seat.ended': 'blocked',
    });
  });
});
