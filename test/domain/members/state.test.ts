/** State rules of members, roles, client access and seats, as their entities implement them. */
import { expect, it } from 'vitest';
import { Membership, Role } from '#domain/access/membership.entity.ts';
import { ClientGrant, Seat } from '#domain/clients/client.entity.ts';

const now = new Date('2026-05-05T12:00:00.000Z');
const later = new Date(now.getTime() + 1);

it('a member is suspended once, and is reinstated to invited or active as before', () => {
  for (const [accepted, status] of [
    [true, 'active'],
    [false, 'invited'],
  ] as const) {
    const member = Object.assign(new Membership(), { status, accepted });
    expect([member.reinstate(), member.suspend(), member.suspend(), member.status]).toEqual([
      false,
      true,
      false,
      'suspended',
    ]);
    expect([member.reinstate(), member.status]).toEqual([true, status]);
  }
});

it('a role of an organization is never the system’s owner role, whatever its key', () => {
  const role: Role = new Role();
  role.organizationId = '7';
  role.key = 'owner';
  expect([role.isSystem, role.isOwner]).toEqual([false, false]);
  role.organizationId = null;
  expect([role.isSystem, role.isOwner]).toEqual([true, true]);
  role.key = 'admin';
  expect([role.isSystem, role.isOwner]).toEqual([true, false]);
});

it('a role reports which permissions a change adds and removes', () => {
  const role = Object.assign(new Role(), { permissions: ['org.read', 'org.keys.manage'] });
  expect(role.permit(['org.read', 'org.roles.read'])).toEqual({
    added: ['org.roles.read'],
    removed: ['org.keys.manage'],
  });
  expect(role.permissions).toEqual(['org.read', 'org.roles.read']);
});

it('access is active before its planned end, and not at that moment', () => {
  const grant = new ClientGrant();
  grant.status = 'active';
  grant.endsAt = null;
  expect(grant.isActiveAt(now)).toBe(true);
  grant.endsAt = later;
  expect(grant.isActiveAt(now)).toBe(true);
  grant.endsAt = now;
  expect(grant.isActiveAt(now)).toBe(false);
});

it('ended access has a reason and is not active', () => {
  const grant = Object.assign(new ClientGrant(), { status: 'active', endsAt: null, endReason: null });
  grant.end('moved');
  expect(grant).toMatchObject({ status: 'ended', endReason: 'moved' });
  expect(grant.isActiveAt(now)).toBe(false);
});

it('a seat ends once', () => {
  const seat = Object.assign(new Seat(), { endedAt: null, endReason: null });
  expect([seat.end(), seat.end(), seat.endReason]).toEqual([true, false, 'ended_by_organization']);
});
