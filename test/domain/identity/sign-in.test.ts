/**
 * Signing in: two steps, limits, and answers that do not reveal whether a person exists. Source:
 * OWASP ASVS 5.0, V6.
 */
import { argon2Sync } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { listFactors } from '#domain/identity/factors.ts';
import { rejectionsInMemory } from '#domain/identity/limits.ts';
import { redeemRecoveryCode, verifyTotp } from '#domain/identity/second-factor.ts';
import { endOtherSessions, findSession, listSessions } from '#domain/identity/sessions.ts';
import { signIn } from '#domain/identity/sign-in.ts';
import {
  countFailure,
  factorSubject,
  passwordSubject,
  rememberedRejections,
} from '#domain/identity/sign-in-failures.ts';
import type { Visitor } from '#domain/identity/types.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { blockSubject, codeAt, countBy, goodPassword, minuteMs, settings, setupPeople, visitor } from '#test/people.ts';

type People = Awaited<ReturnType<typeof setupPeople>>;
const elsewhere: Visitor = { ...visitor, address: '198.51.100.9' };

const enter = (t: People, email: string, password = goodPassword, from = visitor) =>
  signIn(t.db, { email, password, visitor: from }, t.now);
const getOutcome = (work: Promise<unknown>) =>
  work.then(
    () => 'in',
    (error: { reason?: string }) => error.reason ?? String(error),
  );

describe('signing in', () => {
  it('requires password and second factor; a session between them can do nothing else, and each step has its own token', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    t.pass(minuteMs);
    const first = await enter(t, ` ${person.email.toUpperCase()} `);
    expect(first).toMatchObject({ personId: person.personId });
    const half = await t.session(first.token);
    expect(half).toMatchObject({ state: 'password_passed', secondFactorAt: null });
    for (const work of [
      listSessions(t.db, half, t.now()),
      listFactors(t.db, half),
      endOtherSessions(t.db, half, visitor),
    ])
      await expect(work).rejects.toMatchObject({ reason: 'second_factor_needed' });

    const code = codeAt(person.secret, t.now());
    const { token } = await verifyTotp(t.db, half, { code, visitor }, settings, t.now);
    expect(await findSession(t.db, first.token, t.now())).toBeNull();
    expect(await t.session(token)).toMatchObject({ id: half.id, state: 'full', secondFactorAt: t.now() });
    const entries = (await t.entries(person.orgId)).slice(-2);
    expect(entries).toMatchObject([
      { action: 'sign_in.password', person: person.personId, address: visitor.address },
      { action: 'sign_in.complete', detail: { step: 'totp' } },
    ]);
  });

  it('is mailed to the person from a browser that they had not used before, and only then', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    /** Signs in with a browser's cookie, and returns it with the mails about sign-ins until then. */
    const signInFrom = async (browser: string | null) => {
      t.pass(minuteMs);
      const from = { ...visitor, browser };
      const half = await signIn(t.db, { email: person.email, password: goodPassword, visitor: from }, t.now);
      const code = { code: codeAt(person.secret, t.now()), visitor: from };
      const done = await verifyTotp(t.db, await t.session(half.token), code, settings, t.now);
      const { rowCount } = await t.owner.pool.query(`select from mail where kind = 'sign_in.complete'`);
      return { browser: done.browser, mails: rowCount };
    };
    const first = await signInFrom(null);
    const again = await signInFrom(first.browser);
    const other = await signInFrom(null);
    expect([first.mails, again.mails, other.mails]).toEqual([1, 1, 2]);
  });

  it('allows ten minutes between the first and the second step', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const { token } = await enter(t, person.email);
    const half = await t.session(token);
    t.pass(10 * minuteMs);
    expect(await findSession(t.db, token, t.now())).toBeNull();
    const code = codeAt(person.secret, t.now());
    await expect(verifyTotp(t.db, half, { code, visitor }, settings, t.now)).rejects.toMatchObject({
      reason: 'session_expired',
    });
  });

  it('treats a wrong password, an unknown address and a person suspended everywhere alike, and counts them alike', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const suspended = await t.enrol();
    await t.owner.pool.query(`update membership set status = 'suspended' where person_id = $1`, [suspended.personId]);
    const tries: [string, string][] = [
      [person.email, 'wrong wrong wrong'],
      ['unknown@example.org', goodPassword],
      [suspended.email, goodPassword],
    ];
    for (const [email, password] of tries) {
      const responses = new Set<string>();
      for (let n = 0; n < 10; n += 1)
        responses.add(
          (await enter(t, email, password).catch((error: Error) => `${error.name}: ${error.message}`)) as string,
        );
      expect([...responses]).toEqual(['IdentityError: The email address or password is incorrect.']);
      await expect(enter(t, email, password)).rejects.toMatchObject({
        reason: 'too_many_attempts',
        message: 'Too many attempts have failed. Try again in 15 minutes.',
      });
    }
  });

  it('records each failure in the log of the person’s organizations, without the input', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    await getOutcome(enter(t, person.email, 'a secret that was tried'));
    const { token } = await enter(t, person.email);
    const half = await t.session(token);
    await getOutcome(verifyTotp(t.db, half, { code: '000000', visitor }, settings, t.now));
    await getOutcome(redeemRecoveryCode(t.db, half, { code: 'ABCD-EFGH-JKLM-NPQR-STUV-WXYZ-2345', visitor }, t.now));
    const entries = await t.entries(person.orgId);
    expect(entries.filter(({ action }) => action === 'sign_in.failure').map(({ detail }) => detail)).toEqual([
      { step: 'password' },
      { step: 'totp' },
      { step: 'recovery_code' },
    ]);
    const all = JSON.stringify(entries);
    for (const needle of ['a secret', '000000', 'ABCD', goodPassword, person.secret, token])
      expect(all).not.toContain(needle);
  });

  it('hashes the password again after the cost parameters changed', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const parameters = {
      message: goodPassword,
      nonce: Buffer.alloc(16, 9),
      parallelism: 1,
      tagLength: 32,
      memory: 1024,
      passes: 1,
    };
    const plain = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '');
    const cheap = `$argon2id$v=19$m=1024,t=1,p=1$${plain(parameters.nonce)}$${plain(
      argon2Sync('argon2id', parameters),
    )}`;
    await t.owner.pool.query('update sign_in set password_hash = $1', [cheap]);
    await enter(t, person.email);
    const { rows } = await t.owner.pool.query('select password_hash as hash from sign_in');
    expect(rows[0].hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    await enter(t, person.email);
  });
});

describe('failed attempts', () => {
  it('are admitted ten at a time, also in parallel', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const outcomes = await Promise.all(
      Array.from({ length: 30 }, () => getOutcome(enter(t, person.email, 'wrong wrong wrong'))),
    );
    expect(outcomes.filter((outcome) => outcome === 'wrong_credentials').length).toBe(10);
    expect(outcomes.filter((outcome) => outcome === 'too_many_attempts').length).toBe(20);
  });

  it('above ten wait 15 minutes for the one before, and attempts during a wait do not extend it', async () => {
    const t = await setupPeople();
    countBy(t.now);
    const person = await t.enrol();
    for (let n = 0; n < 10; n += 1) await getOutcome(enter(t, person.email, 'wrong wrong wrong'));
    for (let n = 0; n < 3; n += 1) {
      t.pass(15 * minuteMs - 1);
      expect(await getOutcome(enter(t, person.email))).toBe('too_many_attempts'); // correct, but too early
      t.pass(2);
      expect(await getOutcome(enter(t, person.email, 'wrong wrong wrong'))).toBe('wrong_credentials');
      expect(await getOutcome(enter(t, person.email, 'wrong wrong wrong'))).toBe('too_many_attempts');
    }
    t.pass(16 * minuteMs);
    const half = await t.session((await enter(t, person.email)).token);
    await verifyTotp(t.db, half, { code: codeAt(person.secret, t.now()), visitor }, settings, t.now);
    // A complete sign-in deletes the failures, so the next ten are admitted at once.
    for (let n = 0; n < 10; n += 1)
      expect(await getOutcome(enter(t, person.email, 'wrong wrong wrong'))).toBe('wrong_credentials');
  });

  it('of 100 at once, exactly the limit is judged, and another pod rejects the next one', async () => {
    const t = await setupPeople();
    const admitted = (db: typeof t.db, address: string | null) =>
      getOutcome(countFailure(db, { subject: passwordSubject('ada@example.org'), address }, t.now()));
    const outcomes = await Promise.all(Array.from({ length: 100 }, () => admitted(t.db, '192.0.2.9')));
    expect(outcomes.filter((outcome) => outcome === 'in').length).toBe(10);
    expect(outcomes.filter((outcome) => outcome === 'too_many_attempts').length).toBe(90);
    const server = parsePostgresUrl(t.database.urls.console);
    const pod = await openDatabase({ server, applicationName: 'another pod', poolMax: 1 });
    onTestFinished(() => pod.close());
    expect(await admitted(pod, '192.0.2.9')).toBe('too_many_attempts');
    expect(await admitted(pod, '192.0.2.10')).toBe('in');
  });

  it('that are rejected are admitted when the window of their count has ended, by each pod', async () => {
    const t = await setupPeople();
    countBy(t.now);
    const attempt = (n: number) => ({ subject: passwordSubject(`${n}`), address: '192.0.2.9' });
    const first = (n: number) => getOutcome(countFailure(t.db, attempt(n), t.now()));
    expect(await first(0)).toBe('in');
    t.pass(14 * minuteMs);
    for (let n = 1; n < 50; n += 1) await first(n);
    expect(await first(50)).toBe('too_many_attempts');
    t.pass(minuteMs);
    expect(await first(51)).toBe('in');
  });

  it('that are rejected are remembered in bounded memory, whatever their number', async () => {
    const t = await setupPeople();
    const subjects = Array.from({ length: rejectionsInMemory + 50 }, (_, n) => passwordSubject(`${n}`));
    await t.owner.pool.query(
      `insert into sign_in_failure
        select k, points, $2 from unnest($1::text[]) key cross join lateral (values (key, 9),
          (encode(sha256('wait'::bytea || '\\x00'::bytea || key::bytea), 'hex'), 1)) each (k, points)`,
      [subjects, Date.now() + 600_000],
    );
    const rejected = (subject: string) => getOutcome(countFailure(t.db, { subject, address: null }, t.now()));
    for (const subject of subjects) expect(await rejected(subject)).toBe('too_many_attempts');
    expect(rememberedRejections(t.db)).toBeLessThan(100);
    expect(rememberedRejections(t.db)).toBeGreaterThan(0);
  });

  it('include correct passwords without a second factor, from a known browser too', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    t.pass(minuteMs);
    const half = await t.session((await enter(t, person.email)).token);
    const code = codeAt(person.secret, t.now());
    const { browser } = await verifyTotp(t.db, half, { code, visitor }, settings, t.now);
    for (const from of [elsewhere, { ...visitor, browser }]) {
      for (let n = 0; n < 10; n += 1) expect(await getOutcome(enter(t, person.email, goodPassword, from))).toBe('in');
      expect(await getOutcome(enter(t, person.email, goodPassword, from))).toBe('too_many_attempts');
    }
  });

  it('from one network do not block the person elsewhere, nor their sessions', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    for (let n = 0; n < 12; n += 1) await getOutcome(enter(t, person.email, 'wrong wrong wrong'));
    expect(await getOutcome(enter(t, person.email))).toBe('too_many_attempts');
    expect(await getOutcome(enter(t, person.email, goodPassword, elsewhere))).toBe('in');
    const session = await t.session(person.token);
    t.pass(minuteMs);
    const code = codeAt(person.secret, t.now());
    await verifyTotp(t.db, session, { code, visitor }, settings, t.now);
  });

  it('count for an IPv6 network together, and above 50 for all people from one network', async () => {
    const t = await setupPeople();
    countBy(t.now);
    const person = await t.enrol();
    for (let n = 0; n < 10; n += 1)
      await getOutcome(enter(t, person.email, 'wrong wrong wrong', { ...visitor, address: `2001:db8:1:2::${n + 1}` }));
    const from = (address: string) => getOutcome(enter(t, person.email, goodPassword, { ...visitor, address }));
    expect(await from('2001:db8:1:2:ffff::1')).toBe('too_many_attempts');
    expect(await from('2001:db8:1:3::1')).toBe('in');
    for (let n = 0; n < 50; n += 1)
      await getOutcome(enter(t, `unknown-${n}@example.org`, 'wrong wrong wrong', elsewhere));
    expect(await getOutcome(enter(t, person.email, goodPassword, elsewhere))).toBe('too_many_attempts');
    t.pass(16 * minuteMs);
    expect(await getOutcome(enter(t, person.email, goodPassword, elsewhere))).toBe('in');
  });

  it('count alike for every spelling of the address', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const [local, domain] = person.email.split('@') as [string, string];
    const spellings = [person.email, person.email.toUpperCase(), ` ${local}@${domain} `, `${local}@example。org`];
    for (let n = 0; n < 10; n += 1)
      expect(await getOutcome(enter(t, spellings[n % 4] ?? '', 'wrong wrong wrong'))).toBe('wrong_credentials');
    for (const text of spellings) expect(await getOutcome(enter(t, text))).toBe('too_many_attempts');
  });

  it('of the second factor count separately, and a correct password does not reset them', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const first = await t.session((await enter(t, person.email)).token);
    for (let n = 0; n < 10; n += 1)
      expect(await getOutcome(verifyTotp(t.db, first, { code: '12345', visitor }, settings, t.now))).toBe('wrong_code');
    const half = await t.session((await enter(t, person.email)).token);
    t.pass(29_000);
    const code = codeAt(person.secret, t.now());
    expect(await getOutcome(verifyTotp(t.db, half, { code, visitor }, settings, t.now))).toBe('too_many_attempts');
  });
});

describe('a known browser', () => {
  const signInFully = async (t: People, person: { email: string; secret: string }, from: typeof visitor) => {
    t.pass(minuteMs);
    const { token } = await enter(t, person.email, goodPassword, from);
    const code = codeAt(person.secret, t.now());
    return verifyTotp(t.db, await t.session(token), { code, visitor: from }, settings, t.now);
  };

  it('can sign in while an attacker fails on purpose from everywhere', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const home = { ...visitor, address: '192.0.2.50' };
    const { browser } = await signInFully(t, person, home);
    expect(browser).toMatch(/^[\w-]{43}$/);
    await blockSubject(t.db, passwordSubject(person.email), t.now());
    const known = { ...home, browser };
    expect(await getOutcome(enter(t, person.email, goodPassword, home))).toBe('too_many_attempts'); // as unknown
    const next = await signInFully(t, person, known);
    expect(next.browser).not.toBe(browser);
    // Each sign-in renews the token and invalidates the one before.
    expect(await getOutcome(enter(t, person.email, goodPassword, known))).toBe('too_many_attempts');
    expect(await getOutcome(enter(t, person.email, goodPassword, { ...home, browser: next.browser }))).toBe('in');
    const { rows } = await t.owner.pool.query(`select string_agg(b::text, '') as everything from known_browser b`);
    expect(rows[0].everything).not.toContain(next.browser);
  });

  it('can enter the second factor while a thief of the password fails at it', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const { browser } = await signInFully(t, person, elsewhere);
    await blockSubject(t.db, factorSubject(person.personId), t.now());
    t.pass(minuteMs);
    const give = async (from: typeof visitor) => {
      const { token } = await enter(t, person.email, goodPassword, from);
      const code = codeAt(person.secret, t.now());
      return getOutcome(verifyTotp(t.db, await t.session(token), { code, visitor: from }, settings, t.now));
    };
    expect(await give({ ...visitor, address: '192.0.2.51' })).toBe('too_many_attempts');
    expect(await give({ ...elsewhere, browser })).toBe('in');
  });

  it('has its own limits, belongs to one person, and is known for 30 days or until their credentials change', async () => {
    const t = await setupPeople();
    countBy(t.now);
    const [person, other] = [await t.enrol(), await t.enrol()];
    const { browser } = await signInFully(t, person, elsewhere);
    const from = { ...elsewhere, browser };
    for (let n = 0; n < 10; n += 1)
      expect(await getOutcome(enter(t, person.email, 'wrong wrong wrong', from))).toBe('wrong_credentials');
    expect(await getOutcome(enter(t, person.email, goodPassword, from))).toBe('too_many_attempts');
    // These failures did not use up another browser's limit.
    expect(await getOutcome(enter(t, person.email, goodPassword, elsewhere))).toBe('in');
    for (let n = 0; n < 10; n += 1) await getOutcome(enter(t, other.email, 'wrong wrong wrong', elsewhere));
    // the token of another person is unknown
    expect(await getOutcome(enter(t, other.email, goodPassword, from))).toBe('too_many_attempts');
    const known = async () =>
      (await t.owner.pool.query('select count(*)::int as n from known_browser where person_id = $1', [person.personId]))
        .rows[0].n;
    t.pass(31 * 24 * 60 * minuteMs);
    for (let n = 0; n < 10; n += 1) await getOutcome(enter(t, person.email, 'wrong wrong wrong', elsewhere));
    expect(await getOutcome(enter(t, person.email, goodPassword, from))).toBe('too_many_attempts');
    for (let n = 0; n < 14; n += 1) {
      t.pass(15 * minuteMs);
      await signInFully(t, person, { ...visitor, address: `203.0.114.${n}` });
    }
    expect(await known()).toBe(10);
    t.pass(15 * minuteMs);
    const { token, browser: last } = await signInFully(t, person, visitor);
    const session = await t.session(token);
    await endOtherSessions(t.db, session, { ...visitor, browser: last });
    expect(await known()).toBe(1);
    await endOtherSessions(t.db, session, visitor);
    expect(await known()).toBe(0);
  });
});

describe('the code of an authenticator app', () => {
  it('is accepted once when it is used twice at once', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    t.pass(minuteMs);
    const halves = [];
    for (let n = 0; n < 4; n += 1) halves.push(await t.session((await enter(t, person.email)).token));
    const code = codeAt(person.secret, t.now());
    const outcomes = await Promise.all(
      halves.map((half) => getOutcome(verifyTotp(t.db, half, { code, visitor }, settings, t.now))),
    );
    expect(outcomes.sort()).toEqual(['in', 'wrong_code', 'wrong_code', 'wrong_code']);
  });

  it('is accepted once, in its own step and the next one, never before and never after a later code', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    t.pass(10 * minuteMs);
    const tryCode = async (offsetMs: number) => {
      const half = await t.session((await enter(t, person.email)).token);
      const code = codeAt(person.secret, new Date(t.now().getTime() + offsetMs));
      return getOutcome(verifyTotp(t.db, half, { code, visitor }, settings, t.now));
    };
    expect(await tryCode(-60_000)).toBe('wrong_code');
    expect(await tryCode(60_000)).toBe('wrong_code');
    expect(await tryCode(30_000)).toBe('wrong_code');
    expect(await tryCode(-30_000)).toBe('in');
    expect(await tryCode(-30_000)).toBe('wrong_code');
    expect(await tryCode(0)).toBe('in');
    expect(await tryCode(-30_000)).toBe('wrong_code');
  });

  it('is used up in the transaction that accepts it: when that fails, it is not', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    t.pass(minuteMs);
    const half = await t.session((await enter(t, person.email)).token);
    const code = codeAt(person.secret, t.now());
    const give = () => verifyTotp(t.db, half, { code, visitor }, settings, t.now);
    // The audit entry is the last that it writes.
    await t.owner.pool.query(
      `alter table audit_entry add constraint broken check (action <> 'sign_in.complete') not valid`,
    );
    await expect(give()).rejects.toMatchObject({ code: '23514' });
    expect(await t.session((await enter(t, person.email)).token)).toMatchObject({ state: 'password_passed' });
    await t.owner.pool.query('alter table audit_entry drop constraint broken');
    await give();
    expect(await getOutcome(give())).toBe('wrong_code');
  });

  it('that confirmed the setup cannot sign in', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const half = await t.session((await enter(t, person.email)).token);
    const code = codeAt(person.secret, t.now());
    expect(await getOutcome(verifyTotp(t.db, half, { code, visitor }, settings, t.now))).toBe('wrong_code');
  });

  it('is checked by a sealed secret, which is resealed under a newer key on use', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    t.pass(minuteMs);
    const newer = { version: 2, secret: Buffer.alloc(32, 5) };
    const rotated = { sealingKeys: [newer, ...settings.sealingKeys] as const };
    const half = await t.session((await enter(t, person.email)).token);
    await verifyTotp(t.db, half, { code: codeAt(person.secret, t.now()), visitor }, rotated, t.now);
    const { rows } = await t.owner.pool.query('select totp_sealed as sealed from second_factor');
    expect(rows[0].sealed.subarray(0, 3).toString('hex')).toBe('010002');
    expect(rows[0].sealed.includes(person.secret)).toBe(false);
    t.pass(minuteMs);
    const next = await t.session((await enter(t, person.email)).token);
    await verifyTotp(t.db, next, { code: codeAt(person.secret, t.now()), visitor }, { sealingKeys: [newer] }, t.now);
  });
});

describe('a recovery code', () => {
  it('is accepted once, also twice at once and in any notation, and the response says how many are left', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    const [first = '', second = ''] = person.recoveryCodes;
    expect(first).toMatch(/^([A-HJ-NP-Z2-9]{4}-){6}[A-HJ-NP-Z2-9]{4}$/);
    const take = async (code: string) =>
      redeemRecoveryCode(t.db, await t.session((await enter(t, person.email)).token), { code, visitor }, t.now);
    expect((await take(first.toLowerCase().replaceAll('-', ' '))).left).toBe(9);
    expect(await getOutcome(take(first))).toBe('wrong_code');
    const outcomes = await Promise.all([1, 2, 3].map(() => getOutcome(take(second))));
    expect(outcomes.sort()).toEqual(['in', 'wrong_code', 'wrong_code']);
  });
});
