/** What an organization's owners set for its console, and that each setting holds. */
import { describe, expect, it } from 'vitest';
import { createEnrolment, createLink } from '#domain/identity/create-link.ts';
import { listFactors, removeFactor } from '#domain/identity/factors.ts';
import { changeSettings, getSettings, type OrganizationSettings } from '#domain/identity/organization-settings.ts';
import { verifyTotp } from '#domain/identity/second-factor.ts';
import { findSession } from '#domain/identity/sessions.ts';
import { signIn } from '#domain/identity/sign-in.ts';
import { codeAt, goodPassword, minuteMs, setupPeople, settings as testSettings, visitor } from '#test/people.ts';

const defaults: OrganizationSettings = {
  displayName: null,
  timeZone: null,
  securityContact: null,
  invitationDomains: [],
  passkeysRequired: false,
  sessionHours: 12,
};

/** An organization with an owner who is signed in, who changes its settings. */
async function setupOwner() {
  const t = await setupPeople();
  const owner = await t.enrol({ roleKey: 'owner' });
  const { orgId: organizationId, personId } = owner;
  return {
    ...t,
    person: owner,
    organizationId,
    by: { personId },
    set: (settings: Partial<OrganizationSettings>, by: { personId: string } | 'orgctl' = { personId }) =>
      changeSettings(t.db, { organizationId, by, ...defaults, ...settings }),
    /** Gives a person a passkey, of which nothing is tried. */
    addPasskey: (id: string) =>
      t.owner.pool.query(
        `insert into second_factor (person_id, kind, name, created_at, credential_id, public_key, counter, transports)
         values ($1, 'passkey', 'Laptop', now(), $1, '', 0, '{}')`,
        [id],
      ),
  };
}

describe('settings', () => {
  it('are recorded with the old and the new value of what differs, and not when nothing does', async () => {
    const { set, db, organizationId, entries } = await setupOwner();
    expect(await getSettings(db, organizationId)).toEqual(defaults);
    const chosen = {
      displayName: 'Harbor Family Law',
      timeZone: 'America/Toronto',
      securityContact: 'IT@Bücher.example',
      invitationDomains: ['Example.org', 'bücher.example', 'example.org'],
      sessionHours: 8,
    };
    await set(chosen);
    const stored = {
      ...chosen,
      passkeysRequired: false,
      securityContact: 'it@xn--bcher-kva.example',
      invitationDomains: ['example.org', 'xn--bcher-kva.example'],
    };
    expect(await getSettings(db, organizationId)).toEqual(stored);
    await set(stored);
    await set({ ...stored, sessionHours: 4 });
    const changes = (await entries(organizationId)).filter(({ action }) => action === 'organization.change');
    expect(changes.map(({ detail }) => detail)).toEqual([
      {
        changed: ['displayName', 'timeZone', 'securityContact', 'invitationDomains', 'sessionHours'],
        displayName: { from: null, to: 'Harbor Family Law' },
        timeZone: { from: null, to: 'America/Toronto' },
        securityContact: { from: null, to: 'it@xn--bcher-kva.example' },
        invitationDomains: { from: [], to: ['example.org', 'xn--bcher-kva.example'] },
        sessionHours: { from: 12, to: 8 },
      },
      { changed: ['sessionHours'], sessionHours: { from: 8, to: 4 } },
    ]);
  });

  it('differ from nothing also by a text that says so', async () => {
    const { set, db, organizationId } = await setupOwner();
    await set({ displayName: 'null' });
    expect((await getSettings(db, organizationId)).displayName).toBe('null');
    await set({ displayName: null });
    expect((await getSettings(db, organizationId)).displayName).toBeNull();
  });

  it('are changed by owners of the organization only', async () => {
    const { set, enrol, db, organizationId } = await setupOwner();
    const administrator = await enrol({ orgId: organizationId, permissions: ['org.members.manage'] });
    const member = await enrol({ orgId: organizationId, permissions: ['org.read'] });
    const elsewhere = await enrol({ roleKey: 'owner' });
    const rejected = [
      [administrator, 'only_owners'],
      [member, 'may_not_manage_members'],
      [elsewhere, 'may_not_manage_members'],
    ] as const;
    for (const [{ personId }, reason] of rejected)
      await expect(set({ sessionHours: 1 }, { personId })).rejects.toMatchObject({ reason });
    expect(await getSettings(db, organizationId)).toEqual(defaults);
  });

  it('are rejected when a value is none', async () => {
    const { set, db, organizationId } = await setupOwner();
    const wrong: Partial<OrganizationSettings>[] = [
      { displayName: 'x'.repeat(201) },
      { timeZone: 'Mars/Olympus' },
      { timeZone: '+02:00' },
      { securityContact: 'it desk' },
      { invitationDomains: ['@example.org'] },
      { invitationDomains: ['*.example.org'] },
      { invitationDomains: ['localhost'] },
      { invitationDomains: Array.from({ length: 21 }, (_, n) => `d${n}.example.org`) },
      { sessionHours: 0 },
      { sessionHours: 13 },
      { sessionHours: 1.5 },
    ];
    for (const settings of wrong) await expect(set(settings)).rejects.toMatchObject({ reason: 'field_invalid' });
    expect(await getSettings(db, organizationId)).toEqual(defaults);
  });
});

describe('allowed domains', () => {
  it('bind every invitation, of an owner and of an operator, and no recovery of a member', async () => {
    const { set, db, owner, now, make, by, person, organizationId } = await setupOwner();
    const early = await make.member({ orgId: organizationId, status: 'invited' });
    await set({ invitationDomains: ['firm.example'] });
    const invite = (email: string, as: typeof by | 'orgctl') =>
      createEnrolment(as === 'orgctl' ? owner : db, { organizationId, email, by: as }, now);
    for (const as of [by, 'orgctl'] as const) {
      for (const email of ['ada@example.org', 'ada@sub.firm.example', 'ada@firm.example.org'])
        await expect(invite(email, as)).rejects.toMatchObject({ reason: 'domain_not_allowed' });
      await invite(`${as === 'orgctl' ? 'bo' : 'ada'}@Firm.Example`, as);
    }
    // Who was invited before gets no new link, and nothing of a rejected invitation stays.
    await expect(createLink(db, { organizationId, personId: early.userId, by }, now)).rejects.toMatchObject({
      reason: 'domain_not_allowed',
    });
    const { rows } = await owner.pool.query(`select from membership where email like '%example.org' and title is null`);
    expect(rows).toHaveLength(2);
    const link = await createLink(owner, { organizationId, personId: person.personId, by: 'orgctl' }, now);
    expect(link.kind).toBe('recover');
  });
});

describe('the allowed domains', () => {
  it('are 20 at most, each once, and none again allows every address', async () => {
    const { set, db, now, by, organizationId, owner } = await setupOwner();
    const domains = Array.from({ length: 20 }, (_, n) => `d${n}.example.org`);
    await set({ invitationDomains: [...domains, 'D0.example.org'] });
    expect((await getSettings(db, organizationId)).invitationDomains).toHaveLength(20);
    await expect(set({ invitationDomains: [...domains, 'd20.example.org'] })).rejects.toMatchObject({
      reason: 'field_invalid',
    });
    const invite = (email: string) => createEnrolment(db, { organizationId, email, by }, now);
    await invite('ada@d19.example.org');
    await expect(invite('ada@d20.example.org')).rejects.toMatchObject({ reason: 'domain_not_allowed' });
    await expect(
      owner.pool.query('update organization_setting set invitation_domains = $1', [[...domains, 'x.example.org']]),
    ).rejects.toThrow('organization_setting_domains_at_most_20');
    await set({ invitationDomains: [] });
    await invite('ada@d20.example.org');
  });
});

describe('required passkeys', () => {
  it('are switched on only by an owner who has one', async () => {
    const { set, addPasskey, person, db, organizationId } = await setupOwner();
    await expect(set({ passkeysRequired: true })).rejects.toMatchObject({ reason: 'passkey_first' });
    await addPasskey(person.personId);
    await set({ passkeysRequired: true });
    expect((await getSettings(db, organizationId)).passkeysRequired).toBe(true);
  });

  it('close the organization, and no other one, to a member without one, from the next request on', async () => {
    const { set, addPasskey, enrol, session, person, organizationId } = await setupOwner();
    const member = await enrol({ orgId: organizationId });
    const needed = async (token: string) => (await session(token)).memberships.map((one) => one.needsPasskey);
    expect(await needed(member.token)).toEqual([false]);
    await addPasskey(person.personId);
    await set({ passkeysRequired: true });
    expect(await needed(member.token)).toEqual([true]);
    expect(await needed(person.token)).toEqual([false]);
    expect(await needed((await enrol()).token)).toEqual([false]);
    await addPasskey(member.personId);
    expect(await needed(member.token)).toEqual([false]);
  });
});

describe('a required passkey', () => {
  it('is one that the person has: they may sign in with their app, and the last passkey that goes closes again', async () => {
    const { set, addPasskey, enrol, session, db, now, pass, person, organizationId } = await setupOwner();
    const member = await enrol({ orgId: organizationId });
    await addPasskey(person.personId);
    await addPasskey(member.personId);
    await set({ passkeysRequired: true });
    pass(minuteMs);
    const half = await signIn(db, { email: member.email, password: goodPassword, visitor }, now);
    const code = { code: codeAt(member.secret, now()), visitor };
    const { token } = await verifyTotp(db, await session(half.token), code, testSettings, now);
    const needs = async () => (await session(token)).memberships.map(({ needsPasskey }) => needsPasskey);
    expect(await needs()).toEqual([false]);
    const { factors } = await listFactors(db, await session(token));
    const passkey = factors.find(({ kind }) => kind === 'passkey');
    await removeFactor(db, await session(token), { factorId: passkey?.id ?? '', visitor }, now);
    expect(await needs()).toEqual([true]);
  });
});

describe('the session length', () => {
  it('is 1 to 12 whole hours, and a session in use ends at the very end of it', async () => {
    const { set, db, pass, now, session, person, organizationId, owner } = await setupOwner();
    for (const sessionHours of [1, 12, 1]) await set({ sessionHours });
    for (const sessionHours of [0, 13, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
      await expect(set({ sessionHours })).rejects.toMatchObject({ reason: 'field_invalid' });
    await expect(
      owner.pool.query('update organization_setting set session_hours = 13 where organization_id = $1', [
        organizationId,
      ]),
    ).rejects.toThrow('organization_setting_session_hours_range');
    const end = (await session(person.token)).expiresAt.getTime();
    while (end - now().getTime() > 20 * minuteMs) {
      pass(20 * minuteMs);
      if (end - now().getTime() > 0) await session(person.token);
    }
    pass(end - now().getTime() - 1);
    expect((await session(person.token)).state).toBe('full');
    pass(1);
    expect(await findSession(db, person.token, now())).toBeNull();
  });

  it('ends sessions that are open already, at their next request', async () => {
    const { set, db, pass, now, session, person } = await setupOwner();
    const expiresAt = async () => (await session(person.token)).expiresAt.getTime() - now().getTime();
    const before = await expiresAt();
    await set({ sessionHours: 1 });
    expect(await expiresAt()).toBe(before - 11 * 60 * minuteMs);
    for (let n = 0; n < 2; n += 1) {
      pass(29 * minuteMs);
      await session(person.token);
    }
    pass(2 * minuteMs);
    expect(await findSession(db, person.token, now())).toBeNull();
  });

  it('is the shortest of the organizations that are open to a person, and shortens no step of signing in', async () => {
    const { set, db, owner, now, pass, session, enrol, person, organizationId } = await setupOwner();
    const other = await enrol();
    const left = async (token: string) =>
      Math.round(((await session(token)).expiresAt.getTime() - now().getTime()) / minuteMs);
    await set({ sessionHours: 3 });
    expect([await left(person.token), await left(other.token)]).toEqual([180, 720]);
    // Invited to the organization, which is not open to them yet; then confirmed.
    await owner.pool.query(
      `insert into membership (organization_id, person_id, name, email, status) values ($1, $2, 'Bo', $3, 'active')`,
      [organizationId, other.personId, other.email],
    );
    expect(await left(other.token)).toBe(720);
    await owner.pool.query(
      `insert into sign_in_confirmation (person_id, organization_id, confirmed_at, confirmed_by)
       values ($1, $2, now(), 'orgctl')`,
      [other.personId, organizationId],
    );
    expect(await left(other.token)).toBe(180);
    pass(minuteMs);
    const begun = await signIn(db, { email: other.email, password: goodPassword, visitor }, now);
    expect(await left(begun.token)).toBe(10);
  });
});
