/**
 * A person who fails to sign in on purpose cannot block known browsers and sessions. Source: OWASP,
 * device cookies.
 */
import { describe, expect, it } from 'vitest';
import { completeEnrolment, setEnrolmentPassword, startEnrolmentTotp } from '#domain/identity/accept-link.ts';
import { changePassword } from '#domain/identity/change-password.ts';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { addTotp, removeFactor, startTotp } from '#domain/identity/factors.ts';
import { redeemRecoveryCode, verifyTotp } from '#domain/identity/second-factor.ts';
import { signIn } from '#domain/identity/sign-in.ts';
import { signInWithProvider } from '#domain/identity/sso-sign-in.ts';
import type { Visitor } from '#domain/identity/types.ts';
import { blockNetwork, codeAt, countBy, goodPassword, minuteMs, settings, setupPeople, visitor } from '#test/people.ts';

type People = Awaited<ReturnType<typeof setupPeople>>;

const getOutcome = (work: Promise<unknown>) =>
  work.then(
    () => 'in',
    (error: { reason?: string }) => error.reason ?? String(error),
  );

async function blockVisitors(t: People): Promise<void> {
  await blockNetwork(t.db, visitor.address ?? '', t.now());
  const stranger = { email: 'next@example.org', password: 'wrong wrong wrong', visitor };
  expect(await getOutcome(signIn(t.db, stranger, t.now))).toBe('too_many_attempts');
}

/** Signs in with both factors, the second one as another visitor if one is given. */
async function signInFully(t: People, person: { email: string; secret: string }, from: Visitor, then = from) {
  t.pass(minuteMs);
  const { token } = await signIn(t.db, { email: person.email, password: goodPassword, visitor: from }, t.now);
  const code = codeAt(person.secret, t.now());
  return verifyTotp(t.db, await t.session(token), { code, visitor: then }, settings, t.now);
}

describe('failures from one network', () => {
  it('do not block a known browser of the person', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const { browser } = await signInFully(t, person, visitor);
    await blockVisitors(t);
    const known = { ...visitor, browser };
    const next = await signInFully(t, person, known);
    expect(next.browser).toMatch(/^[\w-]{43}$/);
    expect(await getOutcome(signInFully(t, person, visitor))).toBe('too_many_attempts'); // as any unknown browser
  });

  it('are as many as before after sign-ins, also those of two networks or of a browser that is known in one step', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const elsewhere = { ...visitor, address: '198.51.100.9' };
    const { browser } = await signInFully(t, person, visitor);
    for (let n = 0; n < 3; n += 1) {
      await signInFully(t, person, visitor);
      await signInFully(t, person, { ...visitor, browser }, visitor);
      await signInFully(t, person, elsewhere, visitor);
      await signInFully(t, person, visitor, elsewhere);
    }
    await blockVisitors(t);
    expect(await getOutcome(signInFully(t, person, visitor))).toBe('too_many_attempts');
  });

  it('are as many as before after sign-ins at a provider, which prove no password', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const providerId = await t.addProvider(person.orgId);
    await t.linkAccount(providerId, person.personId, 'account-1');
    const { browser } = await signInFully(t, person, visitor);
    const known = { ...visitor, browser };
    const guess = (from: Visitor) =>
      getOutcome(signIn(t.db, { email: person.email, password: 'wrong wrong wrong', visitor: from }, t.now));
    // The browser first: sign-ins of others make it one of more than ten.
    for (const from of [known, visitor]) {
      for (let n = 0; n < 10; n += 1) {
        expect(await guess(from)).toBe('wrong_credentials');
        t.pass(minuteMs);
        const { token } = await signInWithProvider(t.db, { providerId, subject: 'account-1', visitor: from }, t.now);
        const code = { code: codeAt(person.secret, t.now()), visitor: from };
        const { browser: newer } = await verifyTotp(t.db, await t.session(token), code, settings, t.now);
        if (from === known) known.browser = newer;
      }
      expect(await guess(from)).toBe('too_many_attempts');
    }
  });

  it('do not block the step-up or the password change of an active session', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    await blockVisitors(t);
    t.pass(minuteMs);
    const code = codeAt(person.secret, t.now());
    const { token } = await verifyTotp(t.db, await t.session(person.token), { code, visitor }, settings, t.now);
    const passwords = { oldPassword: goodPassword, newPassword: 'copper-lantern-bridge-sparrow' };
    expect(await getOutcome(changePassword(t.db, await t.session(token), { ...passwords, visitor }, t.now))).toBe('in');
  });

  it('do not block the holder of an enrolment link', async () => {
    const t = await setupPeople();
    const member = await t.make.member({ status: 'invited' });
    const email = `${member.userId}@example.org`;
    const { token } = await createEnrolment(t.owner, { organizationId: member.orgId, email, by: 'orgctl' }, t.now);
    await blockVisitors(t);
    await setEnrolmentPassword(t.db, { token, password: goodPassword }, t.now);
    const { secret } = await startEnrolmentTotp(t.db, token, settings, t.now);
    const factor = { kind: 'totp', code: codeAt(secret, t.now()) } as const;
    expect(await getOutcome(completeEnrolment(t.db, { token, factor, visitor }, settings, t.now))).toBe('in');
  });
});

describe('failures in a known browser or a session', () => {
  it('have a separate limit of ten, from any number of networks, and count for no network', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const { browser } = await signInFully(t, person, visitor);
    const fail = (n: number) =>
      getOutcome(
        signIn(
          t.db,
          {
            email: person.email,
            password: 'wrong wrong wrong',
            visitor: { ...visitor, address: `198.51.100.${n}`, browser },
          },
          t.now,
        ),
      );
    for (let n = 0; n < 10; n += 1) expect(await fail(n)).toBe('wrong_credentials');
    expect(await fail(10)).toBe('too_many_attempts');
    const session = await t.session(person.token);
    for (let n = 0; n < 10; n += 1)
      expect(await getOutcome(verifyTotp(t.db, session, { code: '12345', visitor }, settings, t.now))).toBe(
        'wrong_code',
      );
    expect(await getOutcome(verifyTotp(t.db, session, { code: '12345', visitor }, settings, t.now))).toBe(
      'too_many_attempts',
    );
    // The networks have all of their 50: these failures are none of theirs.
    await blockNetwork(t.db, '198.51.100.0', t.now());
    await blockNetwork(t.db, '198.51.100.7', t.now());
  });
});

describe('guesses in a stolen session', () => {
  it.each([
    ['the current password', 'wrong_credentials'],
    ['a recovery code', 'wrong_code'],
  ])('of %s are ten of a person, whatever else the session proves, and then one in 15 minutes', async (what, wrong) => {
    const t = await setupPeople();
    countBy(t.now);
    const person = await t.enrol();
    const [recoveryCode = ''] = person.recoveryCodes;
    let stolen = person.token;
    const stepUp = async () => {
      const code = codeAt(person.secret, t.now());
      stolen = (await verifyTotp(t.db, await t.session(stolen), { code, visitor }, settings, t.now)).token;
    };
    /** Proves what a thief can: a code of an app that they add and remove. */
    const prove = async () => {
      const session = await t.session(stolen);
      const { secret } = await startTotp(t.db, session, settings, t.now);
      const code = codeAt(secret, t.now());
      const { id: factorId } = await addTotp(t.db, session, { code, name: 'own', visitor }, settings, t.now);
      await removeFactor(t.db, session, { factorId, visitor }, t.now);
    };
    const guess = async (token: string, isRight = false) => {
      const session = await t.session(token);
      if (what === 'a recovery code') {
        const code = isRight ? recoveryCode : recoveryCode.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'));
        return getOutcome(redeemRecoveryCode(t.db, session, { code, visitor }, t.now));
      }
      const oldPassword = isRight ? goodPassword : 'wrong wrong wrong';
      const passwords = { oldPassword, newPassword: 'copper-lantern-bridge-sparrow', visitor };
      return getOutcome(changePassword(t.db, session, passwords, t.now));
    };
    for (let n = 0; n < 9; n += 1) {
      expect(await guess(stolen)).toBe(wrong);
      t.pass(minuteMs);
      // A success of another proof is no success of this one.
      await stepUp();
      await prove();
    }
    const other = await signInFully(t, person, visitor);
    expect(await guess(other.token)).toBe(wrong);
    for (const token of [stolen, other.token]) expect(await guess(token, true)).toBe('too_many_attempts');
    t.pass(15 * minuteMs);
    await stepUp();
    expect(await guess(stolen, true)).toBe('in');
  });
});
