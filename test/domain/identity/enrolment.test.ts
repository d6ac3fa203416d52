/** One-time links, with which people set up their sign-in. */
import { describe, expect, it } from 'vitest';
import {
  acceptEnrolment,
  completeEnrolment,
  setEnrolmentPassword,
  startEnrolmentTotp,
} from '#domain/identity/accept-link.ts';
import { createEnrolment, createLink, findEnrolment } from '#domain/identity/create-link.ts';
import { verifyTotp } from '#domain/identity/second-factor.ts';
import { endOtherSessions, findSession } from '#domain/identity/sessions.ts';
import { signIn } from '#domain/identity/sign-in.ts';
import { assignRole, reinstateMember, removeMember, suspendMember, unassignRole } from '#domain/members/change.ts';
import { getMemberDetails, listMembers } from '#domain/members/list-members.ts';
import { changeRole } from '#domain/members/roles.ts';
import { codeAt, goodPassword, minuteMs, settings, setupPeople, visitor } from '#test/people.ts';
import { systemRole } from '../members/staff.ts';

const hourMs = 60 * minuteMs;

/** Opens a member's link, with a password and an app that is not confirmed yet. */
async function startEnrolment() {
  const t = await setupPeople();
  const member = await t.make.member();
  const input = { organizationId: member.orgId, email: `${member.userId}@example.org`, by: 'orgctl' } as const;
  const { token } = await createEnrolment(t.owner, input, t.now);
  await setEnrolmentPassword(t.db, { token, password: goodPassword }, t.now);
  const { secret } = await startEnrolmentTotp(t.db, token, settings, t.now);
  return { t, token, secret };
}

describe('an enrolment link', () => {
  it('leads through password and second factor to an active membership, a full session and ten recovery codes, and is consumed', async () => {
    const t = await setupPeople();
    const orgId = await t.make.organization({ name: 'Harbor' });
    const input = { organizationId: orgId, email: 'Ada@Example.org', name: 'Ada', roleKeys: ['owner'] };
    const { token, personId, kind } = await createEnrolment(t.owner, { ...input, by: 'orgctl' }, t.now);
    expect(kind).toBe('invite');
    expect(await findEnrolment(t.db, token, t.now())).toMatchObject({
      personId,
      email: 'ada@example.org',
      organizationName: 'Harbor',
      kind: 'invite',
      passwordHash: null,
    });

    await expect(startEnrolmentTotp(t.db, token, settings, t.now)).rejects.toMatchObject({ reason: 'password_first' });
    await setEnrolmentPassword(t.db, { token, password: goodPassword }, t.now);
    const complete = (code: string) =>
      completeEnrolment(t.db, { token, factor: { kind: 'totp', code }, visitor }, settings, t.now);
    await expect(complete('123456')).rejects.toMatchObject({ reason: 'setup_expired' });
    const { secret, uri } = await startEnrolmentTotp(t.db, token, settings, t.now);
    expect(uri).toContain(`secret=${secret}`);
    const right = codeAt(secret, t.now());
    await expect(complete(right === '000000' ? '000001' : '000000')).rejects.toMatchObject({ reason: 'wrong_code' });
    const { rows: before } = await t.owner.pool.query('select status from membership where person_id = $1', [personId]);
    expect(before).toEqual([{ status: 'invited' }]); // nothing has changed yet

    const done = await complete(right);
    expect(done.recoveryCodes.length).toBe(10);
    const session = await t.session(done.token);
    expect(session).toMatchObject({ personId, state: 'full', email: 'ada@example.org' });
    expect(session.memberships).toMatchObject([{ organizationId: orgId, roleKeys: ['owner'] }]);
    await expect(complete(right)).rejects.toMatchObject({ reason: 'link_expired' });
    expect(await findEnrolment(t.db, token, t.now())).toBeNull();
    const entries = (await t.entries(orgId)).map(({ action }) => action);
    expect(entries.sort()).toEqual(['member.invite', 'member.join', 'sign_in.confirm']);
  });

  it('that is used twice at once enrols once', async () => {
    const { t, token, secret } = await startEnrolment();
    const factor = { kind: 'totp', code: codeAt(secret, t.now()) } as const;
    const tries = await Promise.allSettled(
      [1, 2, 3, 4].map(() => completeEnrolment(t.db, { token, factor, visitor }, settings, t.now)),
    );
    expect(tries.filter(({ status }) => status === 'fulfilled').length).toBe(1);
    for (const one of tries)
      if (one.status === 'rejected') expect(one.reason).toMatchObject({ reason: 'link_expired' });
    const { rows } = await t.owner.pool.query('select count(*)::int as factors from second_factor');
    expect(rows).toEqual([{ factors: 1 }]);
  });

  it('finds its person by every spelling of their address, which the organization sees in one form', async () => {
    const t = await setupPeople();
    const organizationId = await t.make.organization();
    const boss = await t.make.member({ orgId: organizationId, signedIn: true });
    const by = { personId: boss.userId };
    const spellings = [
      'info.a@bücher.example.org',
      'INFO.A@BU\u0308CHER.example.org',
      'info.a@xn--bcher-kva.example.org',
    ];
    const invited = [];
    for (const email of spellings) invited.push(await createEnrolment(t.db, { organizationId, email, by }, t.now));
    expect(new Set(invited.map(({ personId }) => personId)).size).toBe(1);
    const filter = { status: 'all', roleId: null } as const;
    for (const text of [...spellings, 'bücher.example', 'INFO.A@']) {
      const { rows } = await listMembers(t.db, organizationId, { ...filter, text }, null, 10, t.now());
      expect([text, rows.map(({ email }) => email)]).toEqual([text, ['info.a@xn--bcher-kva.example.org']]);
    }
  });

  it('expires after 72 hours, when a newer one is created, and when its person is suspended or removed', async () => {
    const t = await setupPeople();
    const orgId = await t.make.organization();
    const boss = await t.make.member({ orgId, signedIn: true });
    const by = { personId: boss.userId };
    const invite = (email: string) => createEnrolment(t.db, { organizationId: orgId, email, by }, t.now);
    const first = await invite('a@example.org');
    const second = await invite('A@example.org');
    expect(second.personId).toBe(first.personId);
    expect(await findEnrolment(t.db, first.token, t.now())).toBeNull();
    expect(await findEnrolment(t.db, second.token, t.now())).not.toBeNull();
    await suspendMember(t.db, { organizationId: orgId, personId: second.personId, by });
    expect(await findEnrolment(t.db, second.token, t.now())).toBeNull();
    const third = await invite('b@example.org');
    await removeMember(t.db, { organizationId: orgId, personId: third.personId, by });
    expect(await findEnrolment(t.db, third.token, t.now())).toBeNull();
    const fourth = await invite('c@example.org');
    t.pass(72 * hourMs - 1);
    expect(await findEnrolment(t.db, fourth.token, t.now())).not.toBeNull();
    t.pass(1);
    expect(await findEnrolment(t.db, fourth.token, t.now())).toBeNull();
    const password = { token: fourth.token, password: goodPassword };
    await expect(setEnrolmentPassword(t.db, password, t.now)).rejects.toMatchObject({ reason: 'link_expired' });
  });

  it('is not created by inviting a member, whose name, title and roles do not change; their own link is, and is recorded', async () => {
    const t = await setupPeople();
    const orgId = await t.make.organization();
    const boss = await t.make.member({ orgId, name: 'Boss', signedIn: true });
    const by = { personId: boss.userId };
    const invite = (userId: string) => {
      const typed = { email: `${userId}@EXAMPLE.org`, name: 'Someone Else', title: 'Clerk', roleKeys: ['owner'] };
      return createEnrolment(t.db, { organizationId: orgId, by, ...typed }, t.now);
    };
    const state = async () =>
      (
        await t.owner.pool.query(
          `select m.*, (select array_agg(role_id) from membership_role r where r.person_id = m.person_id) as roles,
            (select count(*)::int from enrolment e where e.person_id = m.person_id) as links
           from membership m order by m.person_id`,
        )
      ).rows;
    const member = (fields: object) => t.make.member({ orgId, roleKey: 'member', ...fields });
    const enrolled = await t.enrol({ orgId });
    const [active, suspended, invited] = [
      await member({ name: 's.olsen' }),
      await member({ status: 'suspended' }),
      await member({ status: 'invited', name: 'Nina' }),
    ];
    const before = await state();
    for (const userId of [enrolled.personId, active.userId, suspended.userId])
      await expect(invite(userId)).rejects.toMatchObject({ reason: 'already_member', personId: userId });
    await expect(invite(active.userId)).rejects.toMatchObject({ message: 's.olsen is already a member.' });
    // The link that one who has not accepted yet may be using stays.
    await expect(invite(invited.userId)).rejects.toMatchObject({ message: 'Nina is already invited.' });
    expect(await state()).toEqual(before);
    const own = (personId: string) => createLink(t.db, { organizationId: orgId, personId, by }, t.now);
    for (const { userId } of [invited, active])
      expect(await own(userId)).toMatchObject({ personId: userId, kind: 'invite' });
    await expect(own(suspended.userId)).rejects.toMatchObject({ reason: 'member_suspended' });
    await expect(own(enrolled.personId)).rejects.toMatchObject({ reason: 'operator_needed' });
    const withoutLinks = (rows: { links: number }[]) => rows.map(({ links: _, ...row }) => row);
    expect(withoutLinks(await state())).toEqual(withoutLinks(before));
    const entries = (await t.entries(orgId)).filter(({ person }) => person === boss.userId);
    expect(entries.map(({ action, detail }) => [action, detail])).toEqual([
      ['member.link', { memberId: invited.userId }],
      ['member.link', { memberId: active.userId }],
    ]);
  });

  it('for one who had left renames them if another name was typed, with the old and the new one in the log', async () => {
    const t = await setupPeople();
    const orgId = await t.make.organization();
    const boss = await t.make.member({ orgId, signedIn: true });
    const left = await t.make.member({ orgId, status: 'left', name: 'S. Olsen' });
    const input = { organizationId: orgId, email: `${left.userId}@example.org`, by: { personId: boss.userId } };
    expect(await createEnrolment(t.db, { ...input, name: 'Sara Olsen' }, t.now)).toMatchObject({ wasMember: true });
    expect((await t.entries(orgId)).at(-1)).toMatchObject({
      action: 'member.invite',
      detail: { memberId: left.userId, changed: ['name'], renamed: { from: 'S. Olsen', to: 'Sara Olsen' } },
    });
  });

  it('is stored as a hash only', async () => {
    const { t, token, secret } = await startEnrolment();
    const { rows } = await t.owner.pool.query(
      `select (select string_agg(e::text, '') from enrolment e) || (select string_agg(a::text, '')
        from audit_entry a) as everything`,
    );
    for (const needle of [token, goodPassword, secret, Buffer.from(secret).toString('hex')])
      expect(rows[0].everything).not.toContain(needle);
  });
});

describe('the creator of a link', () => {
  it('needs org.members.manage and every permission that the link gives, and is an owner for an owner’s link', async () => {
    const t = await setupPeople();
    const orgId = await t.make.organization();
    const reader = await t.make.member({ orgId, roleKey: 'member' });
    const clerk = await t.make.member({ orgId, permissions: ['org.members.manage', 'org.read'], signedIn: true });
    const admin = await t.make.member({ orgId, roleKey: 'admin', signedIn: true });
    const boss = await t.make.member({ orgId, roleKey: 'owner', signedIn: true });
    const other = await t.make.member({ roleKey: 'owner', signedIn: true });
    const invite = (who: { userId: string }, email: string, roleKeys = ['member']) =>
      createEnrolment(t.db, { organizationId: orgId, email, roleKeys, by: { personId: who.userId } }, t.now);
    for (const who of [reader, other])
      await expect(invite(who, 'x@example.org')).rejects.toMatchObject({ reason: 'may_not_manage_members' });
    await expect(invite(clerk, 'x@example.org')).rejects.toMatchObject({ reason: 'not_held' });
    await expect(invite(clerk, 'x@example.org', ['admin'])).rejects.toMatchObject({ reason: 'not_held' });
    await expect(invite(admin, 'x@example.org', ['owner'])).rejects.toMatchObject({ reason: 'only_owners' });
    // The link of a member who has not enrolled would give full access as that member.
    const link = (who: { userId: string }, personId: string) =>
      createLink(t.db, { organizationId: orgId, personId, by: { personId: who.userId } }, t.now);
    const invited = await invite(boss, 'admin@example.org', ['admin']);
    for (const personId of [admin.userId, invited.personId])
      await expect(link(clerk, personId)).rejects.toMatchObject({ reason: 'not_held' });
    await expect(invite(clerk, 'admin@example.org')).rejects.toMatchObject({ reason: 'already_member' });
    for (const who of [reader, other])
      await expect(link(who, reader.userId)).rejects.toMatchObject({ reason: 'may_not_manage_members' });
    await expect(link(admin, boss.userId)).rejects.toMatchObject({ reason: 'only_owners' });
    await expect(link(boss, other.userId)).rejects.toMatchObject({ reason: 'no_such_member' });
    expect(await findEnrolment(t.db, invited.token, t.now())).not.toBeNull();
    await link(admin, reader.userId);
    await invite(boss, 'x@example.org', ['owner', 'billing']);
    await expect(invite(boss, 'y@example.org', ['nothing'])).rejects.toMatchObject({ reason: 'no_such_role' });
    for (const [email, words] of [
      ['bö@example.org', 'unaccented letters, digits and symbols before the @'],
      ['bo@faß.example.org', 'whose domain is in its ASCII form'],
    ] as const)
      await expect(invite(boss, email)).rejects.toMatchObject({
        reason: 'email_malformed',
        message: expect.stringContaining(words),
      });
    for (const text of ['no address', 'bad@x', '@example.org', 'a@example..org', 'a@-x.org', 'a@x.1', 'a@b@c.org'])
      await expect(invite(boss, text)).rejects.toMatchObject({ reason: 'email_malformed' });
  });

  it('can never take over a person of another organization, and learns nothing of them', async () => {
    const t = await setupPeople();
    const [here, there] = [await t.make.organization(), await t.make.organization()];
    const boss = await t.make.member({ orgId: here, signedIn: true });
    const by = { personId: boss.userId };
    // Not enrolled, and a member of both organizations: as anyone, and it opens nothing of the other.
    const both = await t.make.member({ orgId: here, roleKey: 'member' });
    await t.owner.pool.query(`insert into membership values ($1, $2, 'B', 'b@example.org', null, 'active')`, [
      there,
      both.userId,
    ]);
    const invited = await createLink(t.db, { organizationId: here, personId: both.userId, by }, t.now);
    await setEnrolmentPassword(t.db, { token: invited.token, password: goodPassword }, t.now);
    const { secret } = await startEnrolmentTotp(t.db, invited.token, settings, t.now);
    const factor = { kind: 'totp', code: codeAt(secret, t.now()) } as const;
    const done = await completeEnrolment(t.db, { token: invited.token, factor, visitor }, settings, t.now);
    const opened = await t.session(done.token);
    expect([opened.memberships.map(({ organizationId }) => organizationId), opened.unconfirmed]).toEqual([
      [here],
      [there],
    ]);
    // Not enrolled, and a member of the other organization only: treated as a new person here.
    const foreign = await t.make.member({ orgId: there });
    const made = await createEnrolment(
      t.db,
      { organizationId: here, email: `${foreign.userId}@example.org`, by },
      t.now,
    );
    expect(made.personId).not.toBe(foreign.userId);
    // Enrolled: the link changes nothing of their sign-in. It lets them join once they have signed in.
    const enrolled = await t.enrol({ orgId: there });
    const link = await createEnrolment(t.db, { organizationId: here, email: enrolled.email, by }, t.now);
    expect(link).toMatchObject({ personId: enrolled.personId, kind: 'invite' });
    await setEnrolmentPassword(t.db, { token: link.token, password: 'another-password-of-four' }, t.now);
    const theirs = await startEnrolmentTotp(t.db, link.token, settings, t.now);
    const code = codeAt(theirs.secret, t.now());
    const taking = { token: link.token, factor: { kind: 'totp', code } as const, visitor };
    await expect(completeEnrolment(t.db, taking, settings, t.now)).rejects.toMatchObject({ reason: 'email_taken' });
    await signIn(t.db, { email: enrolled.email, password: goodPassword, visitor }, t.now);
    const stranger = await t.enrol({ orgId: here });
    const accept = async (who: { token: string }) =>
      acceptEnrolment(t.db, await t.session(who.token), { token: link.token, visitor }, t.now);
    await expect(accept(stranger)).rejects.toMatchObject({ reason: 'link_of_another' });
    // Until then they do not appear by name to the organization that invites them.
    expect((await t.session(enrolled.token)).memberships.map(({ organizationId }) => organizationId)).toEqual([there]);
    expect(await accept(enrolled)).toEqual({ organizationId: here });
    expect((await t.session(enrolled.token)).memberships.map(({ organizationId }) => organizationId).sort()).toEqual(
      [here, there].sort(),
    );
  });

  it('is an operator for a person who lost password or factors, whose sign-in and sessions end when the link is used', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const boss = await t.make.member({ orgId: person.orgId, signedIn: true });
    const input = { organizationId: person.orgId, email: person.email };
    const byBoss = { organizationId: person.orgId, personId: person.personId, by: { personId: boss.userId } };
    await expect(createLink(t.db, byBoss, t.now)).rejects.toMatchObject({ reason: 'operator_needed' });
    const { token, kind } = await createEnrolment(t.owner, { ...input, by: 'orgctl' }, t.now);
    expect(kind).toBe('recover');
    await t.session(person.token); // nothing ends until it is used
    const newPassword = 'quartz lantern meadow fiddle';
    await setEnrolmentPassword(t.db, { token, password: newPassword }, t.now);
    const { secret } = await startEnrolmentTotp(t.db, token, settings, t.now);
    t.pass(31_000);
    const factor = { kind: 'totp', code: codeAt(secret, t.now()) } as const;
    const done = await completeEnrolment(t.db, { token, factor, visitor }, settings, t.now);
    expect(await findSession(t.db, person.token, t.now())).toBeNull();
    await t.session(done.token);
    const attempt = (password: string) => signIn(t.db, { email: person.email, password, visitor }, t.now);
    await expect(attempt(goodPassword)).rejects.toMatchObject({ reason: 'wrong_credentials' });
    await attempt(newPassword);
    const { rows } = await t.owner.pool.query('select count(*)::int as codes from recovery_code where person_id = $1', [
      person.personId,
    ]);
    expect(rows).toEqual([{ codes: 10 }]);
  });
});

describe('a recovery link', () => {
  it('works for one hour', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const input = { organizationId: person.orgId, email: person.email, by: 'orgctl' } as const;
    const { token, kind, expiresAt } = await createEnrolment(t.owner, input, t.now);
    expect([kind, expiresAt.getTime() - t.now().getTime()]).toEqual(['recover', hourMs]);
    t.pass(hourMs - 1);
    expect(await findEnrolment(t.db, token, t.now())).not.toBeNull();
    t.pass(1);
    expect(await findEnrolment(t.db, token, t.now())).toBeNull();
  });
});

describe('an invitation that is not accepted yet', () => {
  it('shows the organization nothing of its person: no sign-in, address, last use or kind of link', async () => {
    const t = await setupPeople();
    const victim = await t.enrol();
    const here = await t.make.organization();
    const boss = await t.make.member({ orgId: here, roleKey: 'owner', signedIn: true });
    const by = { personId: boss.userId };
    const invite = (email: string) => createEnrolment(t.db, { organizationId: here, email, by }, t.now);
    const link = await invite(victim.email);
    expect(link.personId).toBe(victim.personId);
    const newcomer = await invite('unknown@example.org');
    t.pass(minuteMs);

    const useSignIn = async () => {
      await signIn(t.db, { email: victim.email, password: 'wrong wrong wrong', visitor }, t.now).catch(() => {});
      const { token } = await signIn(t.db, { email: victim.email, password: goodPassword, visitor }, t.now);
      const code = codeAt(victim.secret, t.now());
      const full = await verifyTotp(t.db, await t.session(token), { code, visitor }, settings, t.now);
      await endOtherSessions(t.db, await t.session(full.token), visitor);
      t.pass(minuteMs);
      return full.token;
    };
    const seen = async (personId: string) => {
      const { hasEnrolled, lastSeenAt } = await getMemberDetails(t.db, here, personId, t.now());
      const filter = { status: 'all', text: '', roleId: null } as const;
      const listed = (await listMembers(t.db, here, filter, null, 20, t.now())).rows.find(
        (m) => m.personId === personId,
      );
      expect(listed).toMatchObject({ hasEnrolled, lastSeenAt });
      return { hasEnrolled, lastSeenAt };
    };
    const neverSeen = { hasEnrolled: false, lastSeenAt: null };
    await useSignIn();
    expect(await seen(victim.personId)).toEqual(neverSeen);
    // The organization does not learn it by suspending and reinstating them either, and this does
    // not make them a member.
    const whom = { organizationId: here, personId: victim.personId, by };
    await suspendMember(t.db, whom);
    await useSignIn();
    expect(await seen(victim.personId)).toEqual(neverSeen);
    await reinstateMember(t.db, whom);
    let token = await useSignIn();
    expect(await seen(victim.personId)).toEqual(neverSeen);
    const { memberships, unconfirmed } = await t.session(token);
    expect([memberships.map(({ organizationId }) => organizationId), unconfirmed]).toEqual([[victim.orgId], []]);
    const entries = (await t.entries(here)).map(({ action, detail }) => [action, detail]);
    expect(entries).toEqual([
      ['member.invite', { memberId: victim.personId, roleKeys: ['member'] }],
      ['member.invite', { memberId: newcomer.personId, roleKeys: ['member'] }],
      ['member.suspend', { memberId: victim.personId }],
      ['member.reinstate', { memberId: victim.personId }],
    ]);

    // After they have accepted, it learns the name as of any member. After they have left, no
    // longer.
    const again = await invite(victim.email);
    await acceptEnrolment(t.db, await t.session(token), { token: again.token, visitor }, t.now);
    token = await useSignIn();
    expect(await seen(victim.personId)).toEqual({ hasEnrolled: true, lastSeenAt: expect.any(Date) });
    expect((await t.entries(here)).map(({ action }) => action)).toContain('sign_in.complete');
    await removeMember(t.db, whom);
    expect(await seen(victim.personId)).toEqual(neverSeen);
  });
});

describe('a link whose creator could no longer create it', () => {
  /**
   * An organization with an owner, an administrator, and a link that the administrator created for
   * a new person, up to the second factor.
   */
  async function setupLink() {
    const t = await setupPeople();
    const orgId = await t.make.organization();
    const boss = await t.make.member({ orgId, roleKey: 'owner', signedIn: true });
    const admin = await t.make.member({ orgId, roleKey: 'admin', signedIn: true });
    const input = { organizationId: orgId, email: 'bob@example.org', by: { personId: admin.userId } };
    const link = await createEnrolment(t.db, input, t.now);
    await setEnrolmentPassword(t.db, { token: link.token, password: goodPassword }, t.now);
    const { secret } = await startEnrolmentTotp(t.db, link.token, settings, t.now);
    const use = () => {
      const factor = { kind: 'totp', code: codeAt(secret, t.now()) } as const;
      return completeEnrolment(t.db, { token: link.token, factor, visitor }, settings, t.now);
    };
    const member = (personId: string) => ({ organizationId: orgId, personId, by: { personId: boss.userId } });
    return { ...t, orgId, boss, admin, link, use, member };
  }

  it('does not enrol its holder as owner when its member has become one since', async () => {
    const t = await setupLink();
    const gained = { ...t.member(t.link.personId), roleId: systemRole.owner };
    await assignRole(t.db, gained);
    expect(await findEnrolment(t.db, t.link.token, t.now())).toBeNull();
    expect((await getMemberDetails(t.db, t.orgId, t.link.personId, t.now())).link).toBeNull();
    await expect(t.use()).rejects.toMatchObject({ reason: 'link_expired' });
    const { rows } = await t.owner.pool.query('select from sign_in where person_id = $1', [t.link.personId]);
    expect(rows).toEqual([]);
    await unassignRole(t.db, gained);
    await t.use();
  });

  it.each([
    ['is removed', (t: Link) => removeMember(t.db, t.member(t.admin.userId))],
    ['is suspended', (t: Link) => suspendMember(t.db, t.member(t.admin.userId))],
    [
      'has lost the role that let them',
      (t: Link) => unassignRole(t.db, { ...t.member(t.admin.userId), roleId: systemRole.admin }),
    ],
  ])('expires when its creator %s', async (_, lose) => {
    const t = await setupLink();
    await lose(t);
    await expect(t.use()).rejects.toMatchObject({ reason: 'link_expired' });
  });

  it('expires when a custom role that it assigns gains a permission that its creator lacks', async () => {
    const t = await setupPeople();
    const orgId = await t.make.organization();
    const boss = await t.make.member({ orgId, roleKey: 'owner', signedIn: true });
    const clerk = await t.make.member({ orgId, permissions: ['org.members.manage', 'org.read'], signedIn: true });
    const clerks = { organizationId: orgId, roleId: clerk.roleId ?? '', by: { personId: boss.userId } };
    const other = await t.make.member({ orgId, permissions: ['org.read'] });
    const input = { organizationId: orgId, personId: other.userId, by: { personId: clerk.userId } };
    const { token } = await createLink(t.db, input, t.now);
    await changeRole(t.db, { ...clerks, roleId: other.roleId ?? '', permissions: ['org.read', 'org.keys.manage'] });
    expect(await findEnrolment(t.db, token, t.now())).toBeNull();
    await changeRole(t.db, { ...clerks, permissions: ['org.members.manage', 'org.read', 'org.keys.manage'] });
    expect(await findEnrolment(t.db, token, t.now())).not.toBeNull();
  });

  it('wins or has expired when its member becomes an owner at the same moment', async () => {
    const t = await setupLink();
    const gained = { ...t.member(t.link.personId), roleId: systemRole.owner };
    const [used, assigned] = await Promise.allSettled([t.use(), assignRole(t.db, gained)]);
    expect(assigned.status).toBe('fulfilled');
    if (used.status === 'rejected') expect(used.reason).toMatchObject({ reason: 'link_expired' });
    const { rows } = await t.owner.pool.query('select from sign_in where person_id = $1', [t.link.personId]);
    expect(rows.length).toBe(used.status === 'fulfilled' ? 1 : 0);
  });

  it('does not add a person who signs in already', async () => {
    const t = await setupLink();
    const person = await t.enrol();
    const input = { organizationId: t.orgId, email: person.email, by: { personId: t.admin.userId } };
    const { token } = await createEnrolment(t.db, input, t.now);
    await assignRole(t.db, { ...t.member(person.personId), roleId: systemRole.owner });
    await expect(acceptEnrolment(t.db, await t.session(person.token), { token, visitor }, t.now)).rejects.toMatchObject(
      { reason: 'link_expired' },
    );
  });
});

type Link = Awaited<ReturnType<typeof setupPeople>> & {
  admin: { userId: string };
  member: (personId: string) => { organizationId: string; personId: string; by: { personId: string } };
};
