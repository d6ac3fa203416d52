/** What an organization's owners set for its console, and that each setting holds. */
import { describe, expect, it } from 'vitest';
import { createEnrolment, createLink } from '#domain/identity/create-link.ts';
import { changeSettings, getSettings, type OrganizationSettings } from '#domain/identity/organization-settings.ts';
import { findSession } from '#domain/identity/sessions.ts';
import { signIn } from '#domain/identity/sign-in.ts';
import { goodPassword, minuteMs, setupPeople, visitor } from '#test/people.ts';

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

describe('the session length', () => {
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
