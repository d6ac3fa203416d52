import { describe, expect, it } from 'vitest';
import { endDueGrantsSql } from '#domain/clients/due-grants.ts';
import { changeTypes, type EventType, eventEnvelope } from '#domain/contract/events.ts';
import { setupWebhooks } from '#test/webhook-rows.ts';

/**
 * A database with one organization, its professional, a webhook for all types, and a
 * connection with the rights of the import.
 */
async function setupEvents() {
  const world = await setupWebhooks();
  const professional = await world.make.member();
  const { orgId } = professional;
  const webhookId = await world.rows.webhook({ orgId });
  const importer = await world.connectAsImport();
  const familyId = await world.make.family({ orgId });

  return {
    ...world,
    orgId,
    professional,
    webhookId,
    importer,
    async insertGrant(columns: Record<string, unknown> = {}, client: Pick<typeof importer, 'query'> = importer) {
      const row = { kind: 'attorney', since: '2026-01-01Z', family_id: familyId, ...columns };
      const names = ['organization_id', 'professional_id', ...Object.keys(row)];
      const { rows } = await client.query<{ id: string }>(
        `insert into client_grant (${names.join(', ')})
          values (${names.map((_, index) => `$${index + 1}`).join(', ')}) returning id`,
        [orgId, professional.userId, ...Object.values(row)],
      );
      return String(rows[0]?.id);
    },
    async insertSeat(grantId: string, client: Pick<typeof importer, 'query'> = importer) {
      const { rows } = await client.query<{ id: string }>(
        'insert into seat (organization_id, grant_id, family_id) values ($1, $2, $3) returning id',
        [orgId, grantId, familyId],
      );
      return String(rows[0]?.id);
    },
    /** Returns type and data of every event so far, in order. */
    async listEvents() {
      const events = await world.rows.events(orgId);
      return events.map(({ type, body }) => [type, (JSON.parse(body) as { data: unknown }).data]);
    },
  };
}

const endGrant = `update client_grant set status = 'ended', end_reason = $2, ends_at = now() where id = $1`;
const endSeat = 'update seat set ended_at = now(), end_reason = $2 where id = $1';

describe('the events that triggers insert', () => {
  it('include a grant that starts, for any writer', async () => {
    const { insertGrant, listEvents, database, connect } = await setupEvents();
    const owner = await connect(database.ownerUrl);

    const first = await insertGrant();
    const second = await insertGrant({ kind: 'neutral', ends_at: '2099-01-01Z' }, owner);

    expect(await listEvents()).toEqual([
      ['client.started', { grantId: first, kind: 'attorney' }],
      ['client.started', { grantId: second, kind: 'neutral' }],
    ]);
  });

  it.each(['ended', 'moved'])('include a grant that is %s, once', async (reason) => {
    const { insertGrant, listEvents, importer } = await setupEvents();
    const grantId = await insertGrant({ kind: 'neutral' });

    await importer.query(endGrant, [grantId, reason]);
    await importer.query(endGrant, [grantId, reason]);

    expect((await listEvents()).slice(1)).toEqual([['client.ended', { grantId, kind: 'neutral', reason }]]);
  });

  it.each(['ended_by_organization', 'subscription_ended'])(
    'include a seat that is assigned and ended as %s',
    async (reason) => {
      const { insertGrant, insertSeat, listEvents, database, connect } = await setupEvents();
      const grantId = await insertGrant();
      const console = await connect(database.urls.console);
      const seatId = await insertSeat(grantId, console);

      await console.query(endSeat, [seatId, reason]);

      expect((await listEvents()).slice(1)).toEqual([
        ['seat.given', { seatId, grantId }],
        ['seat.ended', { seatId, grantId, reason }],
      ]);
    },
  );

  it.each(['import', 'worker'] as const)('include both when the %s ends a grant that has a seat', async (login) => {
    const { insertGrant, insertSeat, listEvents, importer, database, connect } = await setupEvents();
    const grantId = await insertGrant();
    const seatId = await insertSeat(grantId);
    await importer.query('update client_grant set ends_at = now() where id = $1', [grantId]);
    const writer = login === 'import' ? importer : await connect(database.urls.worker);

    await writer.query(`update client_grant set status = 'ended', end_reason = 'ended' where id = $1`, [grantId]);

    const [, , ...after] = await listEvents();
    expect(after).toHaveLength(2);
    expect(after).toContainEqual(['client.ended', { grantId, kind: 'attorney', reason: 'ended' }]);
    expect(after).toContainEqual(['seat.ended', { seatId, grantId, reason: 'access_ended' }]);
  });

  it('belong to their transaction, and are rolled back with it, also to a savepoint', async () => {
    const { insertGrant, insertSeat, listEvents, importer, rows, orgId } = await setupEvents();

    await importer.query('begin');
    await insertGrant();
    await importer.query('rollback');
    expect(await rows.events(orgId)).toEqual([]);

    await importer.query('begin');
    const grantId = await insertGrant();
    await importer.query('savepoint seat');
    await insertSeat(grantId);
    await importer.query('rollback to seat');
    expect(await rows.events(orgId)).toEqual([]); // no other connection sees it before the commit
    await importer.query('commit');

    expect(await listEvents()).toEqual([['client.started', { grantId, kind: 'attorney' }]]);
  });

  it('do not include access that arrives active after its end, neither then nor when the clock ends it', async () => {
    const { insertGrant, listEvents, importer, connect, database } = await setupEvents();
    const late = await insertGrant({ ends_at: '2026-02-01Z' });
    const ahead = await insertGrant({ ends_at: '2099-01-01Z' });

    const { rows: stored } = await importer.query(
      'select id, status, end_reason, api.utc(ends_at) as ends from client_grant order by id = $1 desc',
      [late],
    );
    expect(stored).toEqual([
      { id: late, status: 'ended', end_reason: 'ended', ends: '2026-02-01T00:00:00.000Z' },
      { id: ahead, status: 'active', end_reason: null, ends: '2099-01-01T00:00:00.000Z' },
    ]);
    const worker = await connect(database.urls.worker);
    expect((await worker.query(endDueGrantsSql)).rows).toEqual([]);
    expect(await listEvents()).toEqual([['client.started', { grantId: ahead, kind: 'attorney' }]]);
    const contradiction = insertGrant({ ends_at: '2026-02-01Z', end_reason: 'moved' });
    await expect(contradiction).rejects.toThrow('client_grant_ended_has_reason');
  });

  it('do not include rows that arrive ended, nor changes that neither start nor end anything', async () => {
    const { insertGrant, insertSeat, listEvents, importer, orgId } = await setupEvents();
    const ended = await insertGrant({ status: 'ended', end_reason: 'ended', ends_at: '2026-02-01Z' });
    await importer.query(
      `insert into seat (organization_id, grant_id, family_id, given_at, ended_at, end_reason)
       select organization_id, id, family_id, '2026-01-02Z', '2026-02-01Z', 'access_ended' from client_grant
         where id = $1`,
      [ended],
    );
    expect(await listEvents()).toEqual([]);

    const grantId = await insertGrant();
    await insertSeat(grantId);
    await importer.query(`update client_grant set ends_at = '2099-01-01Z' where id = $1`, [grantId]);
    await importer.query(`update client_grant set end_reason = 'moved' where id = $1`, [ended]);
    await importer.query(`update seat set given_at = now() where organization_id = $1 and ended_at is null`, [orgId]);
    await importer.query(
      `insert into client_grant (organization_id, id, kind, professional_id, family_id, since)
       select organization_id, id, kind, professional_id, family_id, since from client_grant where id = $1
       on conflict (organization_id, id) do update set since = excluded.since`,
      [grantId],
    );

    expect((await listEvents()).map(([type]) => type)).toEqual(['client.started', 'seat.given']);
  });

  it('have the contract’s body, byte for byte, with a version 7 id and the time of their row', async () => {
    const { insertGrant, insertSeat, importer, rows, orgId } = await setupEvents();
    await importer.query(`set timezone = 'Asia/Kathmandu'; set datestyle = 'German'; set lc_time = 'C'`);
    const grantId = await insertGrant();
    await insertSeat(grantId);
    await importer.query(endGrant, [grantId, 'moved']);

    const events = await rows.events(orgId);

    expect(events.map(({ type }) => type).sort()).toEqual([...changeTypes].sort());
    for (const { id, type, body, created_at } of events) {
      const parsed = eventEnvelope(type as EventType)
        .strict()
        .parse(JSON.parse(body));
      expect(JSON.stringify(parsed)).toBe(body); // the contract's order of fields, without spaces
      expect(parsed).toMatchObject({ id, createdAt: created_at.toISOString(), organization: { id: orgId } });
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-/);
      expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBeGreaterThanOrEqual(created_at.getTime() - 5);
    }
  });
});
