/** Bounds on queued sign-ins and password hashes. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { setEnrolmentPassword } from '#domain/identity/accept-link.ts';
import { strangersQueue } from '#domain/identity/bounded-queue.ts';
import { hashLoad, isPassword } from '#domain/identity/password.ts';
import { verifyTotp } from '#domain/identity/second-factor.ts';
import { assertMayTry, signIn } from '#domain/identity/sign-in.ts';
import { countFailure, passwordSubject } from '#domain/identity/sign-in-failures.ts';
import { generateToken } from '#domain/identity/token.ts';
import { blockSubject, codeAt, countBy, goodPassword, minuteMs, settings, setupPeople, visitor } from '#test/people.ts';

const getOutcome = (work: Promise<unknown>) =>
  work.then(
    () => 'in',
    (error: { reason?: string }) => error.reason ?? String(error),
  );

describe('a one-time link', () => {
  it('hashes ten passwords, and then one in 15 minutes; one that is not allowed costs none of them', async () => {
    const t = await setupPeople();
    countBy(t.now);
    const [token, other] = [await t.invite(), await t.invite()];
    const choose = (password = goodPassword, link = token) =>
      getOutcome(setEnrolmentPassword(t.db, { token: link, password }, t.now));
    const before = hashLoad().done;
    for (let n = 0; n < 20; n += 1) expect(await choose('password1234')).toBe('password_common');
    const outcomes: string[] = [];
    for (let n = 0; n < 30; n += 1) outcomes.push(await choose());
    expect(outcomes).toEqual([...Array(10).fill('in'), ...Array(20).fill('too_many_attempts')]);
    expect(hashLoad().done - before).toBe(10);
    expect(await choose(goodPassword, other)).toBe('in');
    t.pass(15 * minuteMs);
    expect([await choose(), await choose()]).toEqual(['in', 'too_many_attempts']);
  });
});

describe('all passwords of one link at once', () => {
  it.each([
    ['that are allowed', goodPassword, ['in', 'too_many_attempts', 'busy']],
    ['that are common', 'password1234', ['password_common', 'busy']],
  ])('%s take one place among the sign-ins of strangers', async (_, password, possible) => {
    const t = await setupPeople();
    countBy(t.now);
    const token = await t.invite();
    const places: number[] = [];
    const watch = setInterval(() => places.push(strangersQueue.load().running + strangersQueue.load().waiting), 1);
    onTestFinished(() => clearInterval(watch));
    const signIns = Array.from({ length: 20 }, (_, n) => {
      const where = { ...visitor, address: `10.1.0.${n}` };
      return getOutcome(signIn(t.db, { email: `p${n}@example.org`, password: goodPassword, visitor: where }, t.now));
    });
    const passwords = Array.from({ length: 104 }, () =>
      getOutcome(setEnrolmentPassword(t.db, { token, password }, t.now)),
    );
    expect(new Set(await Promise.all(signIns))).toEqual(new Set(['wrong_credentials']));
    const outcomes = new Set(await Promise.all(passwords));
    expect(Math.max(...places)).toBeLessThanOrEqual(signIns.length + 1);
    expect([...outcomes].filter((outcome) => !possible.includes(outcome))).toEqual([]);
    expect(outcomes).toContain(possible[0]);
  });
});

describe('passwords that the console will not hash', () => {
  it('take no place in the queue of strangers: without a valid link, or after its ten passwords', async () => {
    const t = await setupPeople();
    countBy(t.now);
    const used = await t.invite();
    const choose = (token: string) => getOutcome(setEnrolmentPassword(t.db, { token, password: goodPassword }, t.now));
    for (let n = 0; n < 10; n += 1) expect(await choose(used)).toBe('in');
    expect(await choose(used)).toBe('too_many_attempts');
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, n) => choose(n % 2 === 0 ? used : generateToken())),
    );
    expect(new Set(outcomes)).toEqual(new Set(['too_many_attempts', 'link_expired']));
  });
});

describe('a remembered rejection', () => {
  it('applies to every spelling of its address, and to no known browser', async () => {
    const t = await setupPeople();
    const subject = passwordSubject('info.a@xn--bcher-kva.example.org');
    await blockSubject(t.db, subject, t.now());
    expect(await getOutcome(countFailure(t.db, { subject, address: '192.0.2.1' }, t.now()))).toBe('too_many_attempts');
    const from = (email: string, browser: string | null = null) =>
      getOutcome(
        (async () => assertMayTry(t.db, { email, visitor: { ...visitor, address: '192.0.2.2', browser } }, t.now()))(),
      );
    for (const email of ['info.a@bücher.example.org', ' INFO.A@XN--BCHER-KVA.example.org', 'info.a@bücher.example.org'])
      expect(await from(email)).toBe('too_many_attempts');
    expect(await from('info.b@bücher.example.org')).toBe('in');
    expect(await from('info.a@bücher.example.org', generateToken())).toBe('in');
  });
});

describe('parallel sign-ins', () => {
  it('of strangers run two at a time, 50 wait, and more are rejected; known browsers do not wait for them', async () => {
    const t = await setupPeople();
    const person = await t.enrol();
    t.pass(minuteMs);
    const first = await signIn(t.db, { email: person.email, password: goodPassword, visitor }, t.now);
    const code = codeAt(person.secret, t.now());
    const { browser } = await verifyTotp(t.db, await t.session(first.token), { code, visitor }, settings, t.now);
    const order: string[] = [];
    const from = (email: string, where: Partial<typeof visitor>) =>
      signIn(t.db, { email, password: goodPassword, visitor: { ...visitor, ...where } }, t.now);
    const work = Array.from({ length: 300 }, (_, n) =>
      from(`p${n}@example.org`, { address: `10.0.${n >> 8}.${n & 255}` }).catch(
        (error: { reason: string; retryAt: Date | null }) => {
          order.push(error.reason);
          return error;
        },
      ),
    );
    expect(await getOutcome(from(person.email, { browser }))).toBe('in');
    expect(order.filter((reason) => reason === 'wrong_credentials').length).toBeLessThan(40);
    const rejections = await Promise.all(work.slice(52));
    expect(rejections[0]).toMatchObject({ reason: 'busy', retryAt: new Date(t.now().getTime() + 5000) });
    await Promise.all(work);
    expect(order.filter((reason) => reason === 'busy').length).toBe(248);
    expect(order.filter((reason) => reason === 'wrong_credentials').length).toBe(52);
  });

  it('of known browsers succeed while the holders of links choose passwords: these are strangers', async () => {
    const t = await setupPeople();
    const people = [await t.enrol(), await t.enrol(), await t.enrol()];
    t.pass(minuteMs);
    const known: { email: string; browser: string | null }[] = [];
    for (const { email, secret } of people) {
      const { token } = await signIn(t.db, { email, password: goodPassword, visitor }, t.now);
      const code = codeAt(secret, t.now());
      const { browser } = await verifyTotp(t.db, await t.session(token), { code, visitor }, settings, t.now);
      known.push({ email, browser });
    }
    const links = await Promise.all(Array.from({ length: 120 }, () => t.invite()));
    const passwords = links.map((token) =>
      getOutcome(setEnrolmentPassword(t.db, { token, password: goodPassword }, t.now)),
    );
    const signIns = [...known, ...known, ...known].map(({ email, browser }) =>
      getOutcome(signIn(t.db, { email, password: goodPassword, visitor: { ...visitor, browser } }, t.now)),
    );
    expect(await Promise.all(signIns)).toEqual(signIns.map(() => 'in'));
    const chosen = await Promise.all(passwords);
    const [accepted, busy] = ['in', 'busy'].map((one) => chosen.filter((each) => each === one).length);
    expect((accepted ?? 0) + (busy ?? 0)).toBe(passwords.length);
    // The queue has 52 places. Links are looked up before it, so a hash may end before the last one waits.
    expect(accepted).toBeGreaterThanOrEqual(52);
    expect(busy).toBeGreaterThan(0);
  });

  it('hash a bounded number of passwords, and the others are rejected before any work', async () => {
    const before = hashLoad();
    const seen: number[] = [];
    const attempts = Array.from({ length: 300 }, () => isPassword('wrong wrong wrong', null));
    const watch = setInterval(() => seen.push(hashLoad().running), 1);
    const outcomes = await Promise.all(attempts.map(getOutcome));
    clearInterval(watch);
    const most = Math.max(...seen);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(3);
    // One queue: so many run, and 50 wait.
    expect(hashLoad().done - before.done).toBe(most + 50);
    expect(outcomes.filter((outcome) => outcome === 'busy').length).toBe(300 - most - 50);
    expect(hashLoad()).toMatchObject({ running: 0, waiting: 0 });
  });
});
