/** Seats and clients' access: assigned, ended, moved, with their events. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { endGrant, moveGrant } from '#domain/clients/end-access.ts';
import { assignSeat, endSeat } from '#domain/clients/seats.ts';
import { suspendMember } from '#domain/members/change.ts';
import { outcomes, setupStaff } from '../members/staff.ts';

describe('a seat', () => {
  it('is assigned to a family with active access while a seat is free, and is ended, with events and audit entries', async () => {
    const t = await setupStaff();
    const by = { personId: t.admin.userId };
    const base = { organizationId: t.orgId, by };
    const grant = await t.make.grant({ professional: t.member });
    const { id } = await assignSeat(t.db, { ...base, grantId: grant.id });
    await expect(assignSeat(t.db, { ...base, grantId: grant.id })).rejects.toMatchObject({
      reason: 'family_has_seat',
    });
    const again = await t.make.grant({ professional: t.admin, familyId: grant.familyId });
    await expect(assignSeat(t.db, { ...base, grantId: again.id })).rejects.toMatchObject({
      reason: 'family_has_seat',
    });
    const ended = await t.make.grant({ professional: t.member, endsAt: new Date(), endReason: 'ended' });
    await expect(assignSeat(t.db, { ...base, grantId: ended.id })).rejects.toMatchObject({
      reason: 'grant_not_active',
    });
    const foreign = await t.make.grant({ professional: await t.make.member() });
    for (const grantId of [foreign.id, randomUUID()])
      await expect(assignSeat(t.db, { ...base, grantId })).rejects.toMatchObject({ reason: 'no_such_grant' });
    await endSeat(t.db, { ...base, seatId: id });
    await expect(endSeat(t.db, { ...base, seatId: id })).rejects.toMatchObject({ reason: 'seat_ended' });
    await expect(endSeat(t.db, { ...base, seatId: randomUUID() })).rejects.toMatchObject({ reason: 'no_such_seat' });
    for (const who of [t.member, await t.make.member()]) {
      const notAllowed = { organizationId: t.orgId, by: { personId: who.userId } };
      await expect(assignSeat(t.db, { ...notAllowed, grantId: grant.id })).rejects.toMatchObject({
        reason: 'may_not_manage_seats',
      });
      await expect(endSeat(t.db, { ...notAllowed, seatId: id })).rejects.toMatchObject({
        reason: 'may_not_manage_seats',
      });
    }
    expect((await t.events()).filter(({ type }) => type.startsWith('seat'))).toEqual([
      { type: 'seat.given', data: { seatId: id, grantId: grant.id } },
      { type: 'seat.ended', data: { seatId: id, grantId: grant.id, reason: 'ended_by_organization' } },
    ]);
    expect(await t.entries()).toEqual([
      { action: 'seat.give', person: t.admin.userId, detail: { seatId: id, grantId: grant.id } },
      { action: 'seat.end', person: t.admin.userId, detail: { seatId: id, grantId: grant.id } },
    ]);
  });

  it('is assigned at most as often as the plan allows, and once to a family, also in parallel', async () => {
    const t = await setupStaff();
    const base = { organizationId: t.orgId, by: { personId: t.boss.userId } };
    const grants = [];
    for (let n = 0; n < 6; n += 1) grants.push(await t.make.grant({ professional: t.member }));
    const result = await outcomes(grants.map(({ id }) => assignSeat(t.db, { ...base, grantId: id })));
    expect(result).toEqual(['done', 'done', 'done', 'no_free_seat', 'no_free_seat', 'no_free_seat']);

    const other = await setupStaff();
    const grant = await other.make.grant({ professional: other.member });
    const give = { organizationId: other.orgId, by: { personId: other.boss.userId }, grantId: grant.id };
    expect(await outcomes([1, 2, 3].map(() => assignSeat(other.db, give)))).toEqual([
      'done',
      'family_has_seat',
      'family_has_seat',
    ]);
  });
});

describe('a client’s access', () => {
  it('ends once, at once, together with its seat', async () => {
    const t = await setupStaff();
    const base = { organizationId: t.orgId, by: { personId: t.boss.userId } };
    const grant = await t.make.grant({ professional: t.member, endsAt: new Date(Date.now() + 86_400_000) });
    const seatId = await t.make.seat({ orgId: t.orgId, grant });
    const end = { ...base, grantId: grant.id };
    expect(await outcomes([1, 2, 3].map(() => endGrant(t.db, end)))).toEqual([
      'done',
      'grant_not_active',
      'grant_not_active',
    ]);
    const { rows } = await t.owner.pool.query(
      `select status, end_reason, ends_at <= now() as "isOver" from client_grant where id = $1`,
      [grant.id],
    );
    expect(rows).toEqual([{ status: 'ended', end_reason: 'ended', isOver: true }]);
    const events = await t.events();
    expect(events).toHaveLength(4);
    expect(events).toContainEqual({
      type: 'client.ended',
      data: { grantId: grant.id, kind: 'attorney', reason: 'ended' },
    });
    expect(events).toContainEqual({ type: 'seat.ended', data: { seatId, grantId: grant.id, reason: 'access_ended' } });
    expect(await t.entries()).toEqual([
      { action: 'grant.end', person: t.boss.userId, detail: { grantId: grant.id } },
      { action: 'grant.ended', person: null, detail: expect.objectContaining({ grantId: grant.id, reason: 'ended' }) },
    ]);
    await expect(endGrant(t.db, { ...end, grantId: randomUUID() })).rejects.toMatchObject({ reason: 'no_such_grant' });
    await expect(endGrant(t.db, { ...end, by: { personId: t.member.userId } })).rejects.toMatchObject({
      reason: 'may_not_manage_seats',
    });
  });

  it('moves to another active member: the old access ends as moved, and new access of the same kind and planned end begins', async () => {
    const t = await setupStaff();
    const base = { organizationId: t.orgId, by: { personId: t.boss.userId } };
    const endsAt = new Date(Date.now() + 86_400_000);
    const grant = await t.make.grant({ professional: t.member, kind: 'neutral', endsAt });
    const move = (toPersonId: string, grantId = grant.id) => moveGrant(t.db, { ...base, grantId, toPersonId });
    await expect(move(t.member.userId)).rejects.toMatchObject({ reason: 'same_professional' });
    const elsewhere = await t.make.member();
    for (const stranger of [elsewhere.userId, 'nobody'])
      await expect(move(stranger)).rejects.toMatchObject({ reason: 'no_such_member' });
    const gone = await t.make.member({ orgId: t.orgId, status: 'suspended' });
    await expect(move(gone.userId)).rejects.toMatchObject({ reason: 'no_such_member' });
    const { id } = await move(t.admin.userId);
    const { rows } = await t.owner.pool.query(
      'select id, kind, professional_id as professional, family_id as family, status, end_reason as ' +
        'reason, (extract(epoch from ends_at) * 1000)::float as "endsAtMs" from client_grant order by ' +
        'since, id',
    );
    expect(rows).toMatchObject([
      { id: grant.id, professional: t.member.userId, status: 'ended', reason: 'moved' },
      {
        id,
        kind: 'neutral',
        professional: t.admin.userId,
        family: grant.familyId,
        status: 'active',
        reason: null,
        endsAtMs: endsAt.getTime(),
      },
    ]);
    expect((await t.events()).slice(1)).toEqual([
      { type: 'client.ended', data: { grantId: grant.id, kind: 'neutral', reason: 'moved' } },
      { type: 'client.started', data: { grantId: id, kind: 'neutral' } },
    ]);
    await expect(move(t.boss.userId)).rejects.toMatchObject({ reason: 'grant_not_active' });
    expect(await outcomes([t.boss, t.member].map(({ userId }) => move(userId, id)))).toEqual([
      'done',
      'grant_not_active',
    ]);
    expect((await t.entries())[0]).toEqual({
      action: 'grant.move',
      person: t.boss.userId,
      detail: { grantId: grant.id, newGrantId: id, from: t.member.userId, to: t.admin.userId },
    });
  });

  it('does not move to a member who is suspended at the same moment', async () => {
    const t = await setupStaff();
    for (let round = 0; round < 5; round += 1) {
      const target = await t.make.member({ orgId: t.orgId, roleKey: 'member' });
      const grant = await t.make.grant({ professional: t.member });
      const by = { personId: t.boss.userId };
      const result = await outcomes([
        moveGrant(t.db, { organizationId: t.orgId, grantId: grant.id, by, toPersonId: target.userId }),
        suspendMember(t.db, { organizationId: t.orgId, personId: target.userId, by }),
      ]);
      expect(result).toEqual(['done', expect.toBeOneOf(['done', 'no_such_member'])]);
    }
  });
});

describe('access that lies ahead', () => {
  async function setupScheduled() {
    const t = await setupStaff();
    const grant = await t.make.grant({ professional: t.member, since: new Date(Date.now() + 86_400_000) });
    const request = { organizationId: t.orgId, by: { personId: t.boss.userId }, grantId: grant.id };
    const comes = (id = grant.id) => t.owner.pool.query(`update client_grant set since = now() where id = $1`, [id]);
    const listTypes = async () => (await t.events()).map(({ type }) => type);
    const readGrants = async () =>
      (
        await t.owner.pool.query(
          'select id, professional_id as professional, since, status from client_grant order by status',
        )
      ).rows;
    return { ...t, grant, request, comes, listTypes, readGrants };
  }

  it('is withdrawn by its end, without an event', async () => {
    const t = await setupScheduled();
    await expect(assignSeat(t.db, t.request)).rejects.toMatchObject({
      reason: 'grant_not_active',
      message: 'This access has not begun. A seat needs active access.',
    });
    expect(await endGrant(t.db, t.request)).toBe('withdrawn');
    for (const act of [endGrant, assignSeat])
      await expect(act(t.db, t.request)).rejects.toMatchObject({
        reason: 'grant_not_active',
        message: expect.stringContaining('This access was withdrawn before it began.'),
      });
    const move = { ...t.request, toPersonId: t.admin.userId };
    await expect(moveGrant(t.db, move)).rejects.toMatchObject({ reason: 'grant_not_active' });
    expect([await t.listTypes(), await t.readGrants()]).toMatchObject([[], [{ status: 'withdrawn' }]]);
    expect(await t.entries()).toEqual([
      { action: 'grant.end', person: t.boss.userId, detail: { grantId: t.grant.id } },
    ]);
  });

  it('moves with its begin', async () => {
    const t = await setupScheduled();
    const [before] = await t.readGrants();
    const { id } = await moveGrant(t.db, { ...t.request, toPersonId: t.admin.userId });
    expect(await t.listTypes()).toEqual([]);
    expect(await t.readGrants()).toEqual([
      { ...before, id, professional: t.admin.userId, status: 'scheduled' },
      { ...before, status: 'withdrawn' },
    ]);
    await t.comes(id);
    expect(await endGrant(t.db, { ...t.request, grantId: id })).toBe('ended');
    expect(await t.listTypes()).toEqual(['client.started', 'client.ended']);
  });

  it('has begun once its time has come, also before the worker has written it', async () => {
    const t = await setupScheduled();
    await t.comes();
    await assignSeat(t.db, t.request);
    await moveGrant(t.db, { ...t.request, toPersonId: t.admin.userId });
    expect((await t.listTypes()).slice(0, 2)).toEqual(['client.started', 'seat.given']);
    expect((await t.listTypes()).slice(2).sort()).toEqual(['client.ended', 'client.started', 'seat.ended']);
  });
});
