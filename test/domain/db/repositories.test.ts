/**
 * Guarantees of every repository: permissions, and a change commits together with its audit entry.
 */
import { expect, it } from 'vitest';
import { deleteWebhook, pauseWebhook, resumeWebhook } from '#delivery/requests.ts';
import type { Authority } from '#domain/access/authority.ts';
import { endGrant, moveGrant } from '#domain/clients/end-access.ts';
import { assignSeat, endSeat } from '#domain/clients/seats.ts';
import { createKey } from '#domain/keys/create.ts';
import { revokeKey } from '#domain/keys/revoke.ts';
import { rotateKey } from '#domain/keys/rotate.ts';
import {
  assignRole,
  changeMember,
  reinstateMember,
  removeMember,
  suspendMember,
  unassignRole,
} from '#domain/members/change.ts';
import { changeRole, createRole, deleteRole } from '#domain/members/roles.ts';
import { changeWebhook } from '#domain/webhooks/change.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import { cancelRedelivery, requestRedelivery } from '#domain/webhooks/redeliveries.ts';
import { rotateSecret } from '#domain/webhooks/rotate.ts';
import { testAllowList, testKeySecrets, testSealingKeys } from '#test/secrets.ts';
import { setupStaff } from '../members/staff.ts';

/** The tables that the changes write, except for audit entries. */
const tables = ['api_key', 'webhook', 'webhook_secret', 'redelivery', 'membership', 'membership_role', 'role'].concat([
  'seat',
  'client_grant',
  'event',
]);

/**
 * Creates an organization with a row for each change, and lists the changes in an order in which
 * all succeed.
 */
async function setupChanges() {
  const t = await setupStaff();
  const { db, orgId: organizationId, make, member } = t;
  const colleague = await make.member({ orgId: organizationId, roleKey: 'member' });
  const roleId = await make.role({ orgId: organizationId, permissions: ['org.read'] });
  const key = await make.apiKey({ creator: t.admin, scopes: ['org.read'] });
  const [first, second] = [await make.grant({ professional: member }), await make.grant({ professional: member })];
  const seatId = await make.seat({ orgId: organizationId, grant: second });
  const webhook = await make.webhook({ orgId: organizationId });
  const failedSince = new Date(Date.now() - 3_600_000).toISOString();
  const redelivery = { id: '' };
  const keyCreator = (by: Authority) => (by === 'orgctl' ? { by, creatorId: t.admin.userId } : { by });
  const webhookFields = { url: 'https://a.example/', eventTypes: ['seat.given'], description: '' };
  const newKey = { organizationId, scopes: ['org.read'] as const, label: 'x', expiresAt: null };
  const newRole = { organizationId, name: 'Case manager', permissions: ['org.read'] };
  const ofRole = { organizationId, roleId };
  const ofMember = { organizationId, personId: member.userId };
  const ofWebhook = { organizationId, webhookId: webhook.id };
  const changes: [string, (by: Authority) => Promise<unknown>][] = [
    ['key.create', (by) => createKey(db, { ...newKey, ...keyCreator(by) }, testKeySecrets)],
    [
      'key.rotate',
      (by) => rotateKey(db, { organizationId, keyId: key.id, by, overlapSeconds: 60, expiresAt: null }, testKeySecrets),
    ],
    ['key.revoke', (by) => revokeKey(db, { organizationId, keyId: key.id, by })],
    ['role.create', (by) => createRole(db, { ...newRole, by })],
    ['role.change', (by) => changeRole(db, { ...ofRole, by, name: 'Other' })],
    ['member.role_assign', (by) => assignRole(db, { ...ofMember, roleId, by })],
    ['member.role_unassign', (by) => unassignRole(db, { ...ofMember, roleId, by })],
    ['role.delete', (by) => deleteRole(db, { ...ofRole, by })],
    ['member.change', (by) => changeMember(db, { ...ofMember, by, name: 'Other' })],
    ['seat.end', (by) => endSeat(db, { organizationId, seatId, by })],
    ['seat.give', (by) => assignSeat(db, { organizationId, grantId: first.id, by })],
    ['grant.move', (by) => moveGrant(db, { organizationId, grantId: first.id, by, toPersonId: colleague.userId })],
    ['grant.end', (by) => endGrant(db, { organizationId, grantId: second.id, by })],
    ['member.suspend', (by) => suspendMember(db, { ...ofMember, by })],
    ['member.reinstate', (by) => reinstateMember(db, { ...ofMember, by })],
    ['member.remove', (by) => removeMember(db, { ...ofMember, by })],
    [
      'webhook.create',
      (by) =>
        createWebhook(
          db,
          { organizationId, by, ...webhookFields },
          { allow: testAllowList, sealingKeys: testSealingKeys },
        ),
    ],
    ['webhook.change', (by) => changeWebhook(db, { ...ofWebhook, by, description: 'Other' }, testAllowList)],
    ['webhook.rotate_secret', (by) => rotateSecret(db, { ...ofWebhook, by }, testSealingKeys)],
    [
      'webhook.redeliver',
      async (by) => {
        const { id } = await requestRedelivery(db, { ...ofWebhook, by, selection: { failedSince } });
        redelivery.id = id;
      },
    ],
    [
      'webhook.cancel_redelivery',
      (by) => cancelRedelivery(db, { organizationId, redeliveryId: redelivery.id || organizationId, by }),
    ],
    ['webhook.pause', (by) => pauseWebhook(db, { ...ofWebhook, by })],
    ['webhook.resume', (by) => resumeWebhook(db, { ...ofWebhook, by })],
    ['webhook.delete', (by) => deleteWebhook(db, { ...ofWebhook, by })],
  ];
  const hashRows = async (table: string) =>
    (
      await t.owner.pool.query(
        `select coalesce(md5(string_agg(r::text, '|' order by r::text)), '') as all from ${table} r`,
      )
    ).rows[0].all as string;
  return {
    ...t,
    changes,
    snapshot: () => Promise.all(tables.map(hashRows)),
    async actions() {
      const { rows } = await t.owner.pool.query<{ action: string }>('select action from audit_entry order by at, id');
      return rows.map(({ action }) => action);
    },
  };
}

it('a change and its audit entry are committed together or not at all', async () => {
  const t = await setupChanges();
  const by = { personId: t.boss.userId };
  await t.owner.pool.query(`
    create function no_audit_entry() returns trigger language plpgsql as
      $$ begin raise exception 'the audit log is full'; end $$;
    create trigger no_audit_entry before insert on audit_entry for each row execute function no_audit_entry()`);
  for (const [action, change] of t.changes) {
    await t.owner.pool.query('alter table audit_entry enable trigger no_audit_entry');
    const [before, recorded] = [await t.snapshot(), await t.actions()];
    await expect(change(by), action).rejects.toThrow('the audit log is full');
    expect({ action, rows: await t.snapshot() }).toEqual({ action, rows: before });
    await t.owner.pool.query('alter table audit_entry disable trigger no_audit_entry');
    await change(by);
    expect({ action, rows: await t.snapshot() }).not.toEqual({ action, rows: before });
    expect((await t.actions()).slice(recorded.length)).toContain(action);
  }
});

it('every change is rejected for a member without the permission, and for one who has lost it', async () => {
  const t = await setupChanges();
  const reader = await t.make.member({ orgId: t.orgId, roleKey: 'member' });
  await t.owner.pool.query('delete from membership_role where person_id = $1', [t.admin.userId]);
  const before = await t.snapshot();
  const recorded = await t.actions();
  for (const personId of [reader.userId, t.admin.userId])
    for (const [action, change] of t.changes)
      await expect(change({ personId }), action).rejects.toMatchObject({
        reason: expect.stringMatching(/^may_not_manage_/),
      });
  expect([await t.snapshot(), await t.actions()]).toEqual([before, recorded]);
});
