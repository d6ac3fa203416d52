/** Accounts at providers: how they are linked, and everything with which a link ends. */
import { describe, expect, it } from 'vitest';
import { completeEnrolment, setEnrolmentPassword, startEnrolmentTotp } from '#domain/identity/accept-link.ts';
import { createLink } from '#domain/identity/create-link.ts';
import { freeAddress } from '#domain/identity/orgctl-actions.ts';
import { verifyTotp } from '#domain/identity/second-factor.ts';
import { findSession } from '#domain/identity/sessions.ts';
import { linkAccount, signInWithProvider, unlinkAccount } from '#domain/identity/sso-sign-in.ts';
import { removeMember, suspendMember } from '#domain/members/change.ts';
import { codeAt, type Enrolled, minuteMs, settings, setupPeople, visitor } from '#test/people.ts';

/** An organization with a provider, and a person with an account there. */
async function setup() {
  const t = await setupPeople();
  const person = await t.enrol({ roleKey: 'owner' });
  await t.enrol({ orgId: person.orgId, roleKey: 'owner' });
  const providerId = await t.addProvider(person.orgId);
  await t.linkAccount(providerId, person.personId, 'account-1');
  const begin = (subject = 'account-1', at = providerId) =>
    signInWithProvider(t.db, { providerId: at, subject, visitor }, t.now);
  /** Returns a full session that began at the provider. */
  const enter = async (subject?: string) => {
    t.pass(minuteMs);
    const code = { code: codeAt(person.secret, t.now()), visitor };
    return (await verifyTotp(t.db, await t.session((await begin(subject)).token), code, settings, t.now)).token;
  };
  const accounts = async (personId = person.personId) =>
    (
      await t.owner.pool.query<{ subject: string }>('select subject from sso_subject where person_id = $1 order by 1', [
        personId,
      ])
    ).rows.map(({ subject }) => subject);
  const isOpen = async (token: string) => (await findSession(t.db, token, t.now())) !== null;
  const link = async (token: string, subject: string) => {
    const session = await t.session(token);
    await linkAccount(t.db, { providerId, subject, sessionId: session.id, session, visitor }, t.now);
  };
  const unlink = async (token: string, organizationId = person.orgId) =>
    unlinkAccount(t.db, await t.session(token), { organizationId, visitor }, t.now);
  return { ...t, person, providerId, begin, enter, accounts, isOpen, link, unlink };
}

const rejected = { reason: 'sign_in_rejected' };

async function recover(t: Awaited<ReturnType<typeof setup>>, { orgId, personId }: Enrolled): Promise<void> {
  const { token, kind } = await createLink(t.owner, { organizationId: orgId, personId, by: 'orgctl' }, t.now);
  expect(kind).toBe('recover');
  await setEnrolmentPassword(t.db, { token, password: 'copper-lantern-bridge-sparrow' }, t.now);
  const { secret } = await startEnrolmentTotp(t.db, token, settings, t.now);
  const factor = { kind: 'totp', code: codeAt(secret, t.now()) } as const;
  await completeEnrolment(t.db, { token, factor, visitor }, settings, t.now);
}

describe('a linked account signs in no more', () => {
  it('after a recovery, at any organization, and its sessions have ended', async () => {
    const t = await setup();
    const other = await t.enrol();
    await t.make.member({ orgId: other.orgId, userId: t.person.personId });
    const elsewhere = await t.addProvider(other.orgId);
    await t.linkAccount(elsewhere, t.person.personId, 'account-7');
    const [old, open] = [await t.begin(), await t.enter()];
    await recover(t, t.person);
    expect(await t.accounts()).toEqual([]);
    await expect(t.begin()).rejects.toMatchObject(rejected);
    await expect(t.begin('account-7', elsewhere)).rejects.toMatchObject(rejected);
    expect([await t.isOpen(old.token), await t.isOpen(open)]).toEqual([false, false]);
  });

  it('after an operator has freed the address', async () => {
    const t = await setup();
    await freeAddress(t.owner, t.person.email);
    expect(await t.accounts()).toEqual([]);
    await expect(t.begin()).rejects.toMatchObject(rejected);
  });

  it('after the membership has ended, also by an import, and another person can link it', async () => {
    for (const ends of ['console', 'import']) {
      const t = await setup();
      const token = await t.enter();
      const { orgId: organizationId, personId } = t.person;
      const member = { organizationId, personId, by: { personId } };
      if (ends === 'console') await removeMember(t.db, member);
      else await t.owner.pool.query(`update membership set status = 'left' where person_id = $1`, [personId]);
      expect([ends, await t.accounts(), await t.isOpen(token)]).toEqual([ends, [], false]);
      const successor = await t.enrol({ orgId: organizationId });
      await t.link(successor.token, 'account-1');
      expect(await t.accounts(successor.personId)).toEqual(['account-1']);
      // Who returns links again, also after the organization has confirmed the sign-in.
      await t.owner.pool.query(`update membership set status = 'active' where person_id = $1`, [personId]);
      expect(await t.accounts()).toEqual([]);
    }
  });

  it('while its member is suspended, and again afterwards', async () => {
    const t = await setup();
    const member = { organizationId: t.person.orgId, personId: t.person.personId, by: 'orgctl' } as const;
    await suspendMember(t.owner, member);
    await expect(t.begin()).rejects.toMatchObject(rejected);
    await t.owner.pool.query(`update membership set status = 'active' where person_id = $1`, [t.person.personId]);
    expect((await t.begin()).token).toMatch(/^[\w-]{43}$/);
  });

  it('after its person has unlinked it, in any session, which ends those that began with it', async () => {
    for (const from of ['password', 'provider']) {
      const t = await setup();
      const [other, own] = [await t.enter(), await t.enter()];
      const token = from === 'password' ? t.person.token : own;
      expect(await t.unlink(token)).toEqual({ endedThis: from === 'provider' });
      expect(await t.accounts()).toEqual([]);
      expect([await t.isOpen(other), await t.isOpen(own), await t.isOpen(t.person.token)]).toEqual([
        false,
        false,
        true,
      ]);
      await expect(t.begin()).rejects.toMatchObject(rejected);
      const entries = await t.entries(t.person.orgId);
      expect(entries.at(-1)).toMatchObject({
        action: 'sign_in.unlink_provider',
        person: t.person.personId,
        detail: { providerId: t.providerId },
      });
      await expect(t.unlink(t.person.token)).rejects.toMatchObject({ reason: 'account_not_linked' });
    }
  });

  it('after another one was linked instead, which ends the sessions that began with it, but this one', async () => {
    const t = await setup();
    const [other, own] = [await t.enter(), await t.enter()];
    await t.link(own, 'account-2');
    expect([await t.isOpen(other), await t.isOpen(own), await t.isOpen(t.person.token)]).toEqual([false, true, true]);
    await expect(t.begin()).rejects.toMatchObject(rejected);
    expect(await t.isOpen(await t.enter('account-2'))).toBe(true);
  });
});

describe('unlinking', () => {
  it('needs a fresh second factor, and is rejected for the only way to sign in, also twice at once', async () => {
    const t = await setup();
    const other = await t.enrol();
    await t.make.member({ orgId: other.orgId, userId: t.person.personId });
    const elsewhere = await t.addProvider(other.orgId);
    await t.owner.pool.query('update sign_in set password_hash = null where person_id = $1', [t.person.personId]);
    await expect(t.unlink(t.person.token)).rejects.toMatchObject({ reason: 'only_way_in' });
    await t.linkAccount(elsewhere, t.person.personId, 'account-7');
    const outcomes = await Promise.allSettled(
      [t.person.orgId, other.orgId].map((orgId) => t.unlink(t.person.token, orgId)),
    );
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await t.accounts()).toHaveLength(1);
    t.pass(6 * minuteMs);
    await expect(t.unlink(t.person.token)).rejects.toMatchObject({ reason: 'step_up_needed' });
  });

  it('counts no account at an organization that the person has left as another way', async () => {
    const t = await setup();
    const other = await t.enrol();
    await t.make.member({ orgId: other.orgId, userId: t.person.personId });
    await t.linkAccount(await t.addProvider(other.orgId), t.person.personId, 'account-7');
    await t.owner.pool.query('update sign_in set password_hash = null where person_id = $1', [t.person.personId]);
    await t.owner.pool.query(
      `update membership set status = 'suspended' where person_id = $1 and organization_id = $2`,
      [t.person.personId, other.orgId],
    );
    await expect(t.unlink(t.person.token)).rejects.toMatchObject({ reason: 'only_way_in' });
  });
});

it('a recovery ends no account of another person', async () => {
  const t = await setup();
  const colleague = await t.enrol({ orgId: t.person.orgId });
  await t.linkAccount(t.providerId, colleague.personId, 'account-9');
  await recover(t, t.person);
  expect(await t.accounts(colleague.personId)).toEqual(['account-9']);
});
