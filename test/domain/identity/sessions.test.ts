/** Sessions: how they end, and the step-up. Source: OWASP ASVS 5.0, V7. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { changePassword } from '#domain/identity/change-password.ts';
import { verifyTotp } from '#domain/identity/second-factor.ts';
import { endOtherSessions, endSession, findSession, listSessions, needsStepUp } from '#domain/identity/sessions.ts';
import { signIn } from '#domain/identity/sign-in.ts';
import { removeMember, suspendMember } from '#domain/members/change.ts';
import { codeAt, goodPassword, minuteMs, settings, setupPeople, visitor } from '#test/people.ts';

type People = Awaited<ReturnType<typeof setupPeople>>;
const newPassword = 'quartz lantern meadow fiddle';

/** Creates another full session of an enrolled person. */
async function another(t: People, person: { email: string; secret: string }): Promise<string> {
  t.pass(minuteMs);
  const { token } = await signIn(t.db, { email: person.email, password: goodPassword, visitor }, t.now);
  const factor = { code: codeAt(person.secret, t.now()), visitor };
  return (await verifyTotp(t.db, await t.session(token), factor, settings, t.now)).token;
}

describe('a session', () => {
  it('ends 30 minutes after its last use', async () => {
    const t = await setupPeople();
    const { token } = await t.enrol();
    for (let n = 0; n < 3; n += 1) {
      t.pass(30 * minuteMs - 1);
      await t.session(token);
    }
    t.pass(30 * minuteMs);
    expect(await findSession(t.db, token, t.now())).toBeNull();
  });

  it('ends 12 hours after it began, also when it is in use or stepped up', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    let token = person.token;
    for (let n = 0; n < 12 * 3 - 1; n += 1) {
      t.pass(20 * minuteMs);
      const session = await t.session(token);
      if (n === 20)
        token = (await verifyTotp(t.db, session, { code: codeAt(person.secret, t.now()), visitor }, settings, t.now))
          .token;
    }
    t.pass(20 * minuteMs - 1);
    await t.session(token);
    t.pass(1);
    expect(await findSession(t.db, token, t.now())).toBeNull();
  });

  it('is found by its token only, of which the database stores a hash', async () => {
    const t = await setupPeople();
    const { token } = await t.enrol();
    for (const wrong of ['', 'x', token.slice(1), `${token}A`, token.toUpperCase(), `${token.slice(0, 42)} `])
      expect(await findSession(t.db, wrong, t.now())).toBeNull();
    const { rows } = await t.owner.pool.query(`select s::text as row from console_session s`);
    expect(rows[0].row).not.toContain(token);
    expect(rows[0].row).not.toContain(Buffer.from(token, 'base64url').toString('hex'));
  });

  it('reports what its person may do now, in each organization', async () => {
    const t = await setupPeople();
    const { token, personId, orgId } = await t.enrol({ permissions: ['org.keys.manage', 'org.read'] });
    expect((await t.session(token)).memberships).toMatchObject([
      { organizationId: orgId, permissions: ['org.keys.manage', 'org.read'] },
    ]);
    await t.owner.pool.query(`update role set permissions = '{org.read}' where organization_id = $1`, [orgId]);
    expect((await t.session(token)).memberships[0]?.permissions).toEqual(['org.read']);
    await t.owner.pool.query(`update membership set status = 'invited' where person_id = $1`, [personId]);
    expect(await t.session(token)).toMatchObject({ memberships: [], unconfirmed: [] });
  });

  it('is listed with its person’s other sessions, each of which can be ended at once', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const stranger = await t.enrol();
    const second = await another(t, person);
    const third = await another(t, person);
    const session = await t.session(person.token);
    const listed = await listSessions(t.db, session, t.now());
    expect(listed.map(({ isThis }) => isThis).sort()).toEqual([false, false, true]);
    for (const one of listed)
      expect(one).toMatchObject({ state: 'full', address: visitor.address, userAgent: 'a browser' });
    for (const id of [(await t.session(stranger.token)).id, randomUUID(), 'x'])
      await expect(endSession(t.db, session, id, visitor)).rejects.toMatchObject({ reason: 'no_such_session' });
    await endSession(t.db, session, (await t.session(second)).id, visitor);
    expect(await findSession(t.db, second, t.now())).toBeNull();
    expect(await endOtherSessions(t.db, session, visitor)).toBe(1);
    expect(await findSession(t.db, third, t.now())).toBeNull();
    // Twice at once, as two windows do: it ends once.
    await Promise.all([1, 2].map(() => endSession(t.db, session, session.id, visitor)));
    expect(await findSession(t.db, person.token, t.now())).toBeNull();
    await t.session(stranger.token);
    expect((await t.entries(person.orgId)).map(({ action }) => action).slice(-3)).toEqual([
      'session.end',
      'session.end_others',
      'session.sign_out',
    ]);
  });

  it('ends when its person can no longer enter any organization, for any reason', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const elsewhere = await t.make.organization();
    await t.make.member({ orgId: elsewhere, userId: person.personId });
    await t.enrol({ orgId: person.orgId }); // an owner remains
    const by = 'orgctl' as const;
    await suspendMember(t.owner, { organizationId: person.orgId, personId: person.personId, by });
    expect((await t.session(person.token)).memberships.map(({ organizationId }) => organizationId)).toEqual([
      elsewhere,
    ]);
    await t.enrol({ orgId: elsewhere });
    await removeMember(t.owner, { organizationId: elsewhere, personId: person.personId, by });
    expect(await findSession(t.db, person.token, t.now())).toBeNull();
    await t.make.member({ orgId: await t.make.organization(), userId: person.personId });
    // Reinstated access does not restore the session.
    expect(await findSession(t.db, person.token, t.now())).toBeNull();

    const other = await t.enrol();
    // by an import
    await t.owner.pool.query(`update membership set status = 'suspended' where person_id = $1`, [other.personId]);
    expect(await findSession(t.db, other.token, t.now())).toBeNull();
  });
});

describe('a person', () => {
  it('has ten sessions at most: the oldest ends, first of those without a second factor, and the log says so', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const half = async (from = visitor) => {
      t.pass(1);
      return (await signIn(t.db, { email: person.email, password: goodPassword, visitor: from }, t.now)).token;
    };
    const isLiving = async (token: string) => (await findSession(t.db, token, t.now(), false)) !== null;
    const halves: string[] = [];
    for (let n = 0; n < 9; n += 1) halves.push(await half());
    expect(await isLiving(halves[0] ?? '')).toBe(true);
    const oldest = (await t.session(halves[0] ?? '')).id;
    await half();
    // A thief of the password does not end the person's own session.
    expect([await isLiving(halves[0] ?? ''), await isLiving(halves[1] ?? '')]).toEqual([false, true]);
    expect(await isLiving(person.token)).toBe(true);
    expect((await t.entries(person.orgId)).filter(({ action }) => action === 'session.end_oldest')).toMatchObject([
      { person: person.personId, detail: { sessionId: oldest } },
    ]);

    await t.owner.pool.query(`update console_session set state = 'full', second_factor_at = now()`);
    const last = await half({ ...visitor, address: '192.0.2.7' });
    expect([await isLiving(person.token), await isLiving(last)]).toEqual([false, true]);
    const { rows } = await t.owner.pool.query('select count(*)::int as n from console_session');
    expect(rows).toEqual([{ n: 10 }]);
  });
});

describe('the step-up', () => {
  it('is required when the second factor is older than 5 minutes, and creates a new token', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const at = t.now().getTime();
    const session = await t.session(person.token);
    expect(needsStepUp(session, new Date(at + 5 * minuteMs))).toBe(false);
    expect(needsStepUp(session, new Date(at + 5 * minuteMs + 1))).toBe(true);
    expect(needsStepUp({ state: 'password_passed', secondFactorAt: null }, t.now())).toBe(true);
    t.pass(6 * minuteMs);
    const change = { oldPassword: goodPassword, newPassword, visitor };
    await expect(changePassword(t.db, session, change, t.now)).rejects.toMatchObject({ reason: 'step_up_needed' });
    const code = codeAt(person.secret, t.now());
    const { token } = await verifyTotp(t.db, session, { code, visitor }, settings, t.now);
    expect(await findSession(t.db, person.token, t.now())).toBeNull();
    expect(needsStepUp(await t.session(token), t.now())).toBe(false);
    expect((await t.entries(person.orgId)).at(-1)).toMatchObject({ action: 'sign_in.step_up' });
  });
});

describe('changing the password', () => {
  it('requires the old one, ends all other sessions, and gives this one a new token', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const mine = await another(t, person);
    const session = await t.session(mine);
    const change = (fields: { oldPassword?: string; newPassword?: string }) =>
      changePassword(t.db, session, { oldPassword: goodPassword, newPassword, visitor, ...fields }, t.now);
    await expect(change({ oldPassword: 'not the old one' })).rejects.toMatchObject({ reason: 'wrong_credentials' });
    await expect(change({ newPassword: 'short' })).rejects.toMatchObject({ reason: 'password_too_short' });
    await expect(change({ newPassword: person.email })).rejects.toMatchObject({ reason: 'password_common' });
    await expect(change({ newPassword: goodPassword })).rejects.toMatchObject({ reason: 'password_unchanged' });
    const { token } = await change({});
    expect(await findSession(t.db, mine, t.now())).toBeNull();
    expect(await findSession(t.db, person.token, t.now())).toBeNull();
    await t.session(token);
    const enter = (password: string) => signIn(t.db, { email: person.email, password, visitor }, t.now);
    await expect(enter(goodPassword)).rejects.toMatchObject({ reason: 'wrong_credentials' });
    await enter(newPassword);
    expect((await t.entries(person.orgId)).map(({ action }) => action)).toContain('password.change');
  });

  it('succeeds once when it is requested twice at once', async () => {
    const t = await setupPeople();
    const session = await t.session((await t.enrol()).token);
    const passwords = ['quartz lantern meadow fiddle', 'copper window thistle armchair'];
    const tries = await Promise.allSettled(
      passwords.map((one) =>
        changePassword(t.db, session, { oldPassword: goodPassword, newPassword: one, visitor }, t.now),
      ),
    );
    expect(tries.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });
});
