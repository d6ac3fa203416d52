/** Second factors of a person: passkeys, authenticator apps, recovery codes. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { completeEnrolment, setEnrolmentPassword, startEnrolmentPasskey } from '#domain/identity/accept-link.ts';
import { createEnrolment } from '#domain/identity/create-link.ts';
import {
  addPasskey,
  addTotp,
  listFactors,
  removeFactor,
  renewRecoveryCodes,
  startPasskey,
  startTotp,
} from '#domain/identity/factors.ts';
import { redeemRecoveryCode, startPasskeyUse, verifyPasskey, verifyTotp } from '#domain/identity/second-factor.ts';
import { findSession } from '#domain/identity/sessions.ts';
import { signIn } from '#domain/identity/sign-in.ts';
import { createAuthenticator, type Signing } from '#test/authenticator.ts';
import { codeAt, goodPassword, minuteMs, settings, setupPeople, visitor } from '#test/people.ts';

const party = settings.relyingParty;

/** Returns the options of a person who has a passkey. */
async function startUse(...given: Parameters<typeof startPasskeyUse>) {
  const options = await startPasskeyUse(...given);
  if (options === null) throw new Error('the person has no passkey');
  return options;
}

/** A person with an app and a passkey, and functions that use the passkey. */
async function setupPasskey() {
  const t = await setupPeople();
  const person = await t.enrol();
  const session = await t.session(person.token);
  const key = createAuthenticator();
  const { challenge } = await startPasskey(t.db, session, party, t.now);
  const { id } = await addPasskey(
    t.db,
    session,
    { response: key.register(challenge), name: 'My laptop', visitor },
    party,
    t.now,
  );
  const half = async () =>
    t.session((await signIn(t.db, { email: person.email, password: goodPassword, visitor }, t.now)).token);
  return { ...t, person, mine: session, key, passkeyId: id, half };
}

describe('a passkey', () => {
  it('is added by a signed-in person, and signs in', async () => {
    const t = await setupPasskey();
    expect((await listFactors(t.db, t.mine)).factors).toMatchObject([
      { kind: 'totp', name: 'Authenticator app' },
      { kind: 'passkey', name: 'My laptop', lastUsedAt: null },
    ]);
    const half = await t.half();
    const options = await startUse(t.db, half, party, t.now);
    expect(options).toMatchObject({
      rpId: party.id,
      userVerification: 'required',
      allowCredentials: [{ id: t.key.id }],
    });
    const { token } = await verifyPasskey(
      t.db,
      half,
      { response: t.key.sign(options.challenge), visitor },
      party,
      t.now,
    );
    expect(await findSession(t.db, token, t.now())).toMatchObject({ state: 'full', personId: t.person.personId });
    const actions = (await t.entries(t.person.orgId)).map(({ action, detail }) => [action, detail]);
    expect(actions).toContainEqual(['factor.add', { factorId: t.passkeyId, kind: 'passkey' }]);
  });

  it('enrols a person without an authenticator app', async () => {
    const t = await setupPeople();
    const member = await t.make.member();
    const input = { organizationId: member.orgId, email: `${member.userId}@example.org`, by: 'orgctl' } as const;
    const { token } = await createEnrolment(t.owner, input, t.now);
    await setEnrolmentPassword(t.db, { token, password: goodPassword }, t.now);
    const key = createAuthenticator();
    const respond = async (response: unknown) =>
      completeEnrolment(t.db, { token, factor: { kind: 'passkey', response }, visitor }, settings, t.now);
    const { challenge, authenticatorSelection } = await startEnrolmentPasskey(t.db, token, party, t.now);
    expect(authenticatorSelection).toMatchObject({ userVerification: 'required' });
    await expect(respond(key.register(challenge, { origin: 'https://evil.example' }))).rejects.toMatchObject({
      reason: 'wrong_passkey',
    });
    // a challenge is valid once
    await expect(respond(key.register(challenge))).rejects.toMatchObject({ reason: 'setup_expired' });
    const again = await startEnrolmentPasskey(t.db, token, party, t.now);
    const done = await respond(key.register(again.challenge));
    expect(await t.session(done.token)).toMatchObject({ state: 'full' });
  });

  it('is rejected with another origin, site or key, without user verification, and with an old challenge or none', async () => {
    const t = await setupPasskey();
    const half = await t.half();
    const other = createAuthenticator();
    const start = async () => (await startUse(t.db, half, party, t.now)).challenge;
    const rejected = async (response: unknown) =>
      expect(verifyPasskey(t.db, half, { response, visitor }, party, t.now)).rejects.toMatchObject({
        reason: 'wrong_passkey',
      });
    const wrong: Signing[] = [
      { origin: 'https://console.example.org.evil.example' },
      { rpId: 'example.org' },
      { userVerified: false },
    ];
    for (const signing of wrong) await rejected(t.key.sign(await start(), signing));
    await rejected(other.sign(await start()));
    const older = await start();
    await start();
    await rejected(t.key.sign(older));
    for (const nonsense of [null, 'x', {}, { id: t.key.id }, { id: t.key.id, response: {} }]) {
      await start();
      await rejected(nonsense).catch(() => {}); // above ten failures the limit rejects instead
    }
  });

  it('answers the newest challenge of its session and purpose, and one of no other', async () => {
    const t = await setupPasskey();
    const half = await t.half();
    const respond = (session: typeof half, { challenge }: { challenge: string }) =>
      verifyPasskey(t.db, session, { response: t.key.sign(challenge), visitor }, party, t.now);
    const replaced = await startUse(t.db, half, party, t.now);
    const newest = await startUse(t.db, half, party, t.now);
    await expect(respond(half, replaced)).rejects.toMatchObject({ reason: 'wrong_passkey' });
    const { token } = await respond(half, newest); // the response to another one did not use it up
    const full = await t.session(token);
    await expect(respond(full, newest)).rejects.toMatchObject({ reason: 'wrong_passkey' });
    const strange = await startUse(t.db, await t.half(), party, t.now);
    await expect(respond(full, strange)).rejects.toMatchObject({ reason: 'wrong_passkey' });
    // Setting up an app or a passkey meanwhile replaces nothing of signing in.
    const use = await startUse(t.db, full, party, t.now);
    const key = createAuthenticator();
    const setup = await startPasskey(t.db, full, party, t.now);
    await startTotp(t.db, full, settings, t.now);
    await addPasskey(t.db, full, { response: key.register(setup.challenge), name: 'Phone', visitor }, party, t.now);
    await respond(full, use);
    // A wrong response uses up its challenge.
    const wrong = await startUse(t.db, full, party, t.now);
    const forged = t.key.sign(wrong.challenge, { userVerified: false });
    await expect(verifyPasskey(t.db, full, { response: forged, visitor }, party, t.now)).rejects.toMatchObject({
      reason: 'wrong_passkey',
    });
    await expect(respond(full, wrong)).rejects.toMatchObject({ reason: 'wrong_passkey' });
  });

  it('answers a challenge once, also twice at once, and before it expires', async () => {
    const t = await setupPasskey();
    const half = await t.half();
    const { challenge } = await startUse(t.db, half, party, t.now);
    const response = t.key.sign(challenge);
    const tries = await Promise.allSettled(
      [1, 2, 3].map(() => verifyPasskey(t.db, half, { response, visitor }, party, t.now)),
    );
    expect(tries.filter(({ status }) => status === 'fulfilled').length).toBe(1);
    const session = await t.session(t.person.token);
    const late = await startUse(t.db, session, party, t.now);
    t.pass(10 * minuteMs);
    await expect(
      verifyPasskey(t.db, session, { response: t.key.sign(late.challenge), visitor }, party, t.now),
    ).rejects.toMatchObject({ reason: 'wrong_passkey' });
  });

  it('whose counter does not increase is rejected as a copy', async () => {
    const t = await setupPasskey();
    const use = async (counter: number) => {
      const half = await t.half();
      const { challenge } = await startUse(t.db, half, party, t.now);
      const response = t.key.sign(challenge, { counter });
      return verifyPasskey(t.db, half, { response, visitor }, party, t.now).then(
        () => 'in',
        (error: { reason: string }) => error.reason,
      );
    };
    const outcomes = [];
    for (const counter of [0, 0, 5, 6, 6, 2, 0, 7]) outcomes.push(await use(counter));
    expect(outcomes).toEqual(['in', 'in', 'in', 'in', 'wrong_passkey', 'wrong_passkey', 'wrong_passkey', 'in']);
  });

  it('of one person is not accepted for another, and cannot be registered twice', async () => {
    const t = await setupPasskey();
    const other = await t.enrol();
    const theirs = await t.session(other.token);
    expect(await startPasskeyUse(t.db, theirs, party, t.now)).toBeNull();
    const { challenge } = await startPasskey(t.db, theirs, party, t.now);
    const input = { response: t.key.register(challenge), name: '', visitor };
    await expect(addPasskey(t.db, theirs, input, party, t.now)).rejects.toMatchObject({ reason: 'factor_known' });
  });
});

describe('another authenticator app', () => {
  it('is added with a valid code, within ten minutes of its setup, after a fresh second factor', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const session = await t.session(person.token);
    const { secret } = await startTotp(t.db, session, settings, t.now);
    const add = (code: string, name = 'Phone') => addTotp(t.db, session, { code, name, visitor }, settings, t.now);
    await expect(add('12345')).rejects.toMatchObject({ reason: 'wrong_code' });
    await add(codeAt(secret, t.now())); // a typing error does not restart it
    await expect(add(codeAt(secret, t.now()))).rejects.toMatchObject({ reason: 'setup_expired' });
    t.pass(minuteMs);
    const half = await t.session(
      (await signIn(t.db, { email: person.email, password: goodPassword, visitor }, t.now)).token,
    );
    await verifyTotp(t.db, half, { code: codeAt(secret, t.now()), visitor }, settings, t.now);
    t.pass(5 * minuteMs);
    await expect(startTotp(t.db, session, settings, t.now)).rejects.toMatchObject({ reason: 'step_up_needed' });
  });
});

describe('removing a factor', () => {
  it('ends the person’s other sessions, is recorded, and is rejected for the last factor and for another person’s', async () => {
    const t = await setupPasskey();
    const stranger = await t.enrol();
    const theirs = (await listFactors(t.db, await t.session(stranger.token))).factors[0]?.id ?? '';
    const remove = (factorId: string) => removeFactor(t.db, t.mine, { factorId, visitor }, t.now);
    for (const id of [theirs, randomUUID(), 'x'])
      await expect(remove(id)).rejects.toMatchObject({ reason: 'no_such_factor' });
    const half = await t.half();
    const { challenge } = await startUse(t.db, half, party, t.now);
    const other = await verifyPasskey(t.db, half, { response: t.key.sign(challenge), visitor }, party, t.now);
    await remove(t.passkeyId);
    expect(await findSession(t.db, other.token, t.now())).toBeNull();
    const [left] = (await listFactors(t.db, t.mine)).factors;
    await expect(remove(left?.id ?? '')).rejects.toMatchObject({ reason: 'last_factor' });
    expect((await t.entries(t.person.orgId)).at(-1)).toMatchObject({
      action: 'factor.remove',
      detail: { factorId: t.passkeyId, kind: 'passkey' },
    });
  });

  it('leaves one when two are removed at once, also by a constraint of the database', async () => {
    const t = await setupPasskey();
    const { factors } = await listFactors(t.db, t.mine);
    const tries = await Promise.allSettled(
      factors.map(({ id }) => removeFactor(t.db, t.mine, { factorId: id, visitor }, t.now)),
    );
    expect(tries.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await expect(t.owner.pool.query('delete from second_factor')).rejects.toMatchObject({
      constraint: 'second_factor_remains',
    });
    const both = await setupPasskey();
    const { factors: two } = await listFactors(both.db, both.mine);
    const raw = await Promise.allSettled(
      two.map(({ id }) => both.owner.pool.query('delete from second_factor where id = $1', [id])),
    );
    expect(raw.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });
});

describe('recovery codes', () => {
  it('are replaced together: the old ones stop working, and the new ones are stored as hashes', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const session = await t.session(person.token);
    const codes = await renewRecoveryCodes(t.db, session, visitor, t.now);
    expect(new Set(codes).size).toBe(10);
    expect((await listFactors(t.db, session)).recoveryCodesLeft).toBe(10);
    const { rows } = await t.owner.pool.query(`select string_agg(c::text, '') as all from recovery_code c`);
    for (const code of codes) expect(rows[0].all).not.toContain(code.slice(0, 9));
    const pass = (code: string) => redeemRecoveryCode(t.db, session, { code, visitor }, t.now);
    await expect(pass(person.recoveryCodes[0] ?? '')).rejects.toMatchObject({ reason: 'wrong_code' });
    expect((await pass(codes[0] ?? '')).left).toBe(9);
  });
});
