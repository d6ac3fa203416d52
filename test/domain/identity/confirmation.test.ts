/**
 * An active membership opens an organization's console only after the person used its link, or an
 * operator confirmed them.
 */
import { describe, expect, it } from 'vitest';
import { acceptEnrolment } from '#domain/identity/accept-link.ts';
import { createEnrolment, createLink } from '#domain/identity/create-link.ts';
import { confirmSignInByAddress, freeAddress, getSignIn } from '#domain/identity/orgctl-actions.ts';
import { findSession } from '#domain/identity/sessions.ts';
import { signIn } from '#domain/identity/sign-in.ts';
import { reinstateMember, removeMember, suspendMember } from '#domain/members/change.ts';
import { getMemberDetails } from '#domain/members/list-members.ts';
import { goodPassword, setupPeople, visitor } from '#test/people.ts';
import { ids, importDocument, smallDocument } from '../../import/document.ts';

/**
 * A person enrolled by one organization. An import has made them an owner of another organization,
 * which already has an owner.
 */
async function setupImported() {
  const t = await setupPeople();
  const [first, second] = [await t.make.organization({ name: 'First' }), await t.make.organization({ name: 'Second' })];
  const person = await t.enrol({ orgId: first, roleKey: 'member' });
  await t.enrol({ orgId: first });
  const boss = await t.enrol({ orgId: second });
  await t.make.member({ orgId: second, userId: person.personId, confirmed: false });
  const open = async (token = person.token) =>
    (await t.session(token)).memberships.map(({ organizationId }) => organizationId).sort();
  const confirmations = async () =>
    (await t.entries(second)).filter(
      ({ action, detail }) => action === 'sign_in.confirm' && detail.memberId === person.personId,
    );
  const whom = { organizationId: second, personId: person.personId, by: 'orgctl' } as const;
  const invite = (by: { personId: string } | 'orgctl' = { personId: boss.personId }) =>
    createLink(t.db, { organizationId: second, personId: person.personId, by }, t.now);
  const accept = async (token: string) =>
    acceptEnrolment(t.db, await t.session(person.token), { token, visitor }, t.now);
  return { ...t, first, second, person, boss, open, confirmations, whom, invite, accept };
}

describe('an imported active owner who enrolled at another organization', () => {
  it('cannot enter the organization, with an existing session or a new one', async () => {
    const t = await setupImported();
    expect(await t.open()).toEqual([t.first]);
    expect((await t.session(t.person.token)).unconfirmed).toEqual([t.second]);
    const { token } = await signIn(t.db, { email: t.person.email, password: goodPassword, visitor }, t.now);
    expect(await t.open(token)).toEqual([t.first]);
    expect(await t.confirmations()).toEqual([]);
  });

  it('cannot enter it after another import', async () => {
    const t = await setupImported();
    const document = JSON.parse(JSON.stringify(smallDocument()).replaceAll('"u1"', `"${t.person.personId}"`));
    for (const _ of [1, 2]) await importDocument(t.database.ownerUrl, document);
    const { memberships, unconfirmed } = await t.session(t.person.token);
    expect(memberships.map(({ organizationId }) => organizationId)).toEqual([t.first]);
    expect(unconfirmed.sort()).toEqual([t.second, ids.organization].sort());
  });

  it('can enter it after using its own link, which is recorded', async () => {
    const t = await setupImported();
    const { token, kind } = await t.invite();
    expect(kind).toBe('invite');
    expect(await t.open()).toEqual([t.first]);
    await t.accept(token);
    expect(await t.open()).toEqual([t.first, t.second].sort());
    expect(await t.confirmations()).toMatchObject([
      { person: t.person.personId, address: visitor.address, detail: { memberId: t.person.personId, by: 'link' } },
    ]);
  });

  it('can enter it after an operator confirmed it, which is recorded once', async () => {
    const t = await setupImported();
    const input = { organizationId: t.second, email: t.person.email };
    const done = { personId: t.person.personId };
    expect(await confirmSignInByAddress(t.owner, input, t.now)).toEqual({ ...done, confirmed: true });
    expect(await confirmSignInByAddress(t.owner, input, t.now)).toEqual({ ...done, confirmed: false });
    expect(await t.open()).toEqual([t.first, t.second].sort());
    expect(await t.confirmations()).toMatchObject([
      { person: null, detail: { memberId: t.person.personId, by: 'orgctl' } },
    ]);
    const { memberships } = await getSignIn(t.owner, t.person.email, t.now);
    expect(memberships.map(({ organizationName, confirmed }) => [organizationName, confirmed])).toEqual([
      ['First', true],
      ['Second', true],
    ]);
  });

  it('shows the organization nothing of their sign-in before that, and shows it afterwards', async () => {
    const t = await setupImported();
    await signIn(t.db, { email: t.person.email, password: 'wrong wrong wrong', visitor }, t.now).catch(() => {});
    const seen = async () => {
      const { hasEnrolled, lastSeenAt } = await getMemberDetails(t.db, t.second, t.person.personId, t.now());
      const entries = (await t.entries(t.second)).filter(({ person }) => person === t.person.personId);
      return { hasEnrolled, isSeen: lastSeenAt !== null, entries: entries.map(({ action }) => action).sort() };
    };
    expect(await seen()).toEqual({ hasEnrolled: false, isSeen: false, entries: [] });
    await t.accept((await t.invite()).token);
    await signIn(t.db, { email: t.person.email, password: goodPassword, visitor }, t.now);
    expect(await seen()).toEqual({
      hasEnrolled: true,
      isSeen: true,
      entries: ['member.join', 'sign_in.confirm', 'sign_in.password'],
    });
  });

  it('is not found by the address with which they sign in elsewhere, whatever their status', async () => {
    const t = await setupPeople();
    const here = await t.make.organization();
    const by = { personId: (await t.make.member({ orgId: here, signedIn: true })).userId };
    for (const status of ['active', 'invited', 'suspended', 'left']) {
      const { personId, email } = await t.enrol();
      await t.owner.pool.query('insert into membership values ($1, $2, $3, $4, null, $5)', [
        here,
        personId,
        'Imported',
        `other-${status}@example.org`,
        status,
      ]);
      const input = { organizationId: here, email, by };
      const first = await createEnrolment(t.db, { ...input, name: 'A Name', roleKeys: ['member'] }, t.now);
      expect([status, first.wasMember, first.personId === personId]).toEqual([status, false, false]);
      expect(await createEnrolment(t.db, input, t.now)).toMatchObject({ personId: first.personId });
    }
  });

  it('does not count as a remaining owner', async () => {
    const t = await setupImported();
    const leave = () => removeMember(t.owner, { ...t.whom, personId: t.boss.personId });
    await expect(leave()).rejects.toMatchObject({ reason: 'last_owner' });
    await t.accept((await t.invite()).token);
    await leave();
  });
});

describe('a confirmation', () => {
  it('ends when the member is removed or invited again, also by an import, and remains through a suspension', async () => {
    const t = await setupImported();
    await t.accept((await t.invite()).token);
    await suspendMember(t.owner, t.whom);
    expect(await t.open()).toEqual([t.first]);
    await reinstateMember(t.owner, t.whom);
    expect(await t.open()).toEqual([t.first, t.second].sort());
    for (const status of ['left', 'invited']) {
      const set = (to: string) =>
        t.owner.pool.query('update membership set status = $3 where organization_id = $1 and person_id = $2', [
          t.second,
          t.person.personId,
          to,
        ]);
      await set(status);
      await set('active');
      expect(await t.open()).toEqual([t.first]);
      await t.accept((await t.invite()).token);
      expect(await t.open()).toEqual([t.first, t.second].sort());
    }
  });

  it('belongs to one sign-in: each organization confirms a person again who enrols again', async () => {
    const t = await setupImported();
    await t.accept((await t.invite()).token);
    await freeAddress(t.owner, t.person.email);
    expect((await t.entries(t.second)).at(-1)).toMatchObject({ action: 'sign_in.free_address', person: null });
    const { rows } = await t.owner.pool.query('select from sign_in_confirmation where person_id = $1', [
      t.person.personId,
    ]);
    expect(rows).toEqual([]);
  });

  it('is rejected for an address without a sign-in, and for a person who is no active member', async () => {
    const t = await setupImported();
    const confirm = (email: string) => confirmSignInByAddress(t.owner, { organizationId: t.second, email }, t.now);
    await expect(confirm('unknown@example.org')).rejects.toMatchObject({ reason: 'no_such_sign_in' });
    const stranger = await t.enrol({ orgId: t.first });
    await expect(confirm(stranger.email)).rejects.toMatchObject({ reason: 'not_an_active_member' });
    await suspendMember(t.owner, t.whom);
    await expect(confirm(t.person.email)).rejects.toMatchObject({ reason: 'not_an_active_member' });
  });

  it('cannot be written by the platform’s login, although it writes memberships', async () => {
    const t = await setupImported();
    const { rows } = await t.owner.pool.query(
      `select has_table_privilege('org_api_platform', 'sign_in_confirmation', 'select, insert, update, delete') as may`,
    );
    expect(rows).toEqual([{ may: false }]);
  });
});

describe('an invitation', () => {
  it('does not appear to a person who signs in before they have used its link', async () => {
    const t = await setupPeople();
    const [here, there] = [await t.make.organization({ name: 'Secret Firm' }), await t.make.organization()];
    const boss = await t.make.member({ orgId: here, signedIn: true });
    const person = await t.enrol({ orgId: there });
    await createEnrolment(t.db, { organizationId: here, email: person.email, by: { personId: boss.userId } }, t.now);
    const session = await t.session(person.token);
    expect(JSON.stringify(session)).not.toMatch(`Secret Firm|${here}`);
    // The link alone lets them sign in, because it is meant for that, and does nothing else.
    await t.enrol({ orgId: there });
    await removeMember(t.owner, { organizationId: there, personId: person.personId, by: 'orgctl' });
    const { token } = await signIn(t.db, { email: person.email, password: goodPassword, visitor }, t.now);
    expect(await findSession(t.db, token, t.now())).toMatchObject({ memberships: [], unconfirmed: [] });
  });
});
