import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { describe, expect, it } from 'vitest';
import { setupWebhooks } from '#test/webhook-rows.ts';

const endGrantSql = `update client_grant set status = 'ended', end_reason = 'ended', ends_at = now() where id = $1`;

async function setupWriter() {
  const world = await setupWebhooks();
  const professional = await world.make.member();
  const { orgId, userId } = professional;
  await world.rows.webhook({ orgId });
  const familyId = await world.make.family({ orgId });
  const platform = await world.connect(world.database.urls.platform);
  /** A grant, its seat, and the grant's end, which ends the seat: four events. */
  const writeAll = async (client: pg.Client) => {
    const { rows } = await client.query<{ id: string }>('select gen_random_uuid() as id');
    const grantId = String(rows[0]?.id);
    const grant = [orgId, grantId, userId, familyId];
    await client.query(
      `insert into client_grant (organization_id, id, kind, professional_id, family_id, since)
        values ($1, $2, 'attorney', $3, $4, now())`,
      grant,
    );
    await client.query('insert into seat (organization_id, grant_id, family_id) values ($1, $2, $3)', [
      orgId,
      grantId,
      familyId,
    ]);
    await client.query(endGrantSql, [grantId]);
    return grantId;
  };
  /** The same changes, as the platform makes them. */
  const callAll = async () => {
    const grantId = randomUUID();
    const seatId = randomUUID();
    const calls: [string, string[]][] = [
      ['start_grant($1, $2, $3, $4, $5)', [orgId, grantId, 'attorney', userId, familyId]],
      ['give_seat($1, $2, $3)', [orgId, seatId, grantId]],
      ['end_grant($1, $2)', [orgId, grantId]],
    ];
    for (const [call, values] of calls) await platform.query(`select platform.${call}`, values);
  };
  return { ...world, orgId, platform, writeAll, callAll };
}

describe('a silent backfill', () => {
  it('needs the backfill role, for every change and for the seat that ends with its grant', async () => {
    const { writeAll, rows, orgId, connect, database } = await setupWriter();
    const owner = await connect(database.ownerUrl);

    await owner.query('begin; set local role org_api_backfill');
    await writeAll(owner);
    await owner.query('commit');

    expect(await rows.events(orgId)).toEqual([]);
    const seat = await owner.query(`select end_reason from seat where organization_id = $1`, [orgId]);
    expect(seat.rows).toEqual([{ end_reason: 'access_ended' }]);

    await writeAll(owner); // the same connection, with triggers enabled again
    expect(await rows.events(orgId)).toHaveLength(4);
  });

  it.each([
    'session_replication_role = replica',
    'role org_api_backfill',
    'session authorization org_api_backfill',
    'role none',
    'row_security = off',
    'plpgsql.extra_errors = none',
    'search_path = pg_temp',
    "search_path = ''",
    'client_min_messages = error',
    'transaction isolation level serializable',
    'org_api.backfill = on',
  ])('is not available to the platform’s login with: set %s', async (setting) => {
    const { callAll, rows, orgId, platform } = await setupWriter();
    await platform.query('begin');
    const allowed = await platform.query(`savepoint asked; set local ${setting}`).then(
      () => true,
      () => false,
    );
    if (!allowed) await platform.query('rollback to asked');

    await callAll();
    await platform.query('commit');

    expect(await rows.events(orgId)).toHaveLength(4);
  });

  it('has no counterpart: a login cannot insert an event without its change', async () => {
    const { rows, orgId, platform } = await setupWriter();
    const forgeries = [
      `select public.record_event('${orgId}', 'client.started', '{}')`,
      `insert into public.event (organization_id, id, type, created_at, body, delivery_count)
        values ('${orgId}', gen_random_uuid(), 'x', now(), '', 0)`,
      `create temp table forged (organization_id uuid, id uuid, kind text, status text);
       create trigger forged after insert on forged for each row execute function public.client_grant_event();
       insert into forged values ('${orgId}', gen_random_uuid(), 'attorney', 'active')`,
      `create temp table forged_seat (organization_id uuid, id uuid, grant_id uuid, ended_at timestamptz);
       create trigger forged after insert on forged_seat for each row execute function public.seat_event();
       insert into forged_seat values ('${orgId}', gen_random_uuid(), gen_random_uuid(), null)`,
    ];

    for (const forgery of forgeries) await expect(platform.query(forgery)).rejects.toThrow('permission denied');
    expect(await rows.events(orgId)).toEqual([]);
  });
});
