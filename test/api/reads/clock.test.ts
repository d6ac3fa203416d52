/** A begin or end that has passed applies to every response at once, before maintenance has recorded it. */
import { expect, it } from 'vitest';
import { beginDueGrantsSql } from '#domain/clients/due-grants.ts';
import { setup } from '#test/setup.ts';

interface Roster {
  clients: { grantId: string; status: string; endsAt: string | null }[];
  seats: Record<string, number>;
}
interface SeatFamilies {
  seats: { id: string }[];
  eligible: { grantId: string }[];
  ended: { id: string; reason: string; endedAt: string }[];
}

it('access is ended in roster, seat counts and seat families from its end on, also before a row says so', async () => {
  const { api, make, owner } = await setup();
  const creator = await make.member();
  const { orgId } = creator;
  const { key } = await make.apiKey({ creator });
  const seated = await make.grant({ professional: creator });
  const eligible = await make.grant({ professional: creator });
  const lasting = await make.grant({ professional: creator, endsAt: new Date(Date.now() + 86_400_000) });
  const seat = await make.seat({ orgId, grant: seated });
  const lastingSeat = await make.seat({ orgId, grant: lasting });
  const get = async (resource: string) => (await api.get(`/v1/orgs/${orgId}${resource}`, { key })).json();
  const read = async () => ({
    roster: (await get('/clients')) as Roster,
    counts: (await get('/seats')) as { used: number },
    families: (await get('/seats/families')) as SeatFamilies,
  });
  const findStatus = ({ clients }: Roster, id: string) => clients.find(({ grantId }) => grantId === id)?.status;

  const endsAt = new Date(Date.now() + 3_000);
  await owner.pool.query('update client_grant set ends_at = $1 where id in ($2, $3)', [endsAt, seated.id, eligible.id]);
  const before = await read();
  expect(Date.now()).toBeLessThan(endsAt.getTime());
  expect([seated, eligible, lasting].map(({ id }) => findStatus(before.roster, id))).toEqual([
    'active',
    'active',
    'active',
  ]);
  expect(before.roster.seats).toEqual({ members: 1, professionalsWithClients: 1, activeFamilies: 3 });
  expect(before.counts.used).toBe(2);
  expect(before.families.eligible).toMatchObject([{ grantId: eligible.id }]);
  expect(before.families.ended).toEqual([]);

  await expect.poll(() => Date.now(), { timeout: 10_000, interval: 20 }).toBeGreaterThan(endsAt.getTime());
  const after = await read();
  expect([seated, eligible, lasting].map(({ id }) => findStatus(after.roster, id))).toEqual([
    'ended',
    'ended',
    'active',
  ]);
  expect(after.roster.seats).toEqual({ members: 1, professionalsWithClients: 1, activeFamilies: 1 });
  expect(after.counts.used).toBe(1);
  expect(after.families.seats).toMatchObject([{ id: lastingSeat }]);
  expect(after.families.eligible).toEqual([]);
  expect(after.families.ended).toMatchObject([{ id: seat, reason: 'access_ended', endedAt: endsAt.toISOString() }]);

  // Maintenance, which runs later, changes no response.
  await owner.pool.query(`update client_grant set status = 'ended', end_reason = 'ended' where ends_at <= now()`);
  expect(await read()).toEqual(after);
});

it('access is in roster, seat counts and seat families from its begin on, also before a row says so, and never when it is withdrawn', async () => {
  const { api, make, owner } = await setup();
  const creator = await make.member();
  const { orgId } = creator;
  const { key } = await make.apiKey({ creator });
  const tomorrow = new Date(Date.now() + 86_400_000);
  const grant = await make.grant({ professional: creator, since: tomorrow });
  const withdrawn = await make.grant({ professional: creator, since: tomorrow });
  const get = async (resource: string) => (await api.get(`/v1/orgs/${orgId}${resource}`, { key })).json();
  const read = async () => ({
    roster: (await get('/clients')) as Roster,
    families: (await get('/seats/families')) as SeatFamilies,
  });
  expect(await read()).toMatchObject({
    roster: { clients: [], seats: { members: 1, professionalsWithClients: 0, activeFamilies: 0 } },
    families: { eligible: [] },
  });

  await owner.pool.query(`update client_grant set status = 'withdrawn' where id = $1`, [withdrawn.id]);
  await owner.pool.query('update client_grant set since = now()');
  const after = await read();
  expect(after).toMatchObject({
    roster: {
      clients: [{ grantId: grant.id, status: 'active', endsAt: null }],
      seats: { members: 1, professionalsWithClients: 1, activeFamilies: 1 },
    },
    families: { eligible: [{ grantId: grant.id }] },
  });

  expect((await owner.pool.query(beginDueGrantsSql)).rowCount).toBe(1);
  expect(await read()).toEqual(after);
});
