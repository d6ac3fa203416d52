/**
 * Bounds on refused and queued sign-ins: no I/O while PostgreSQL would refuse, and bounded queues.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { admitAttempt, deleteFailures, passwordSubject } from '#domain/identity/attempts.ts';
import { hashLoad, isPassword } from '#domain/identity/password.ts';
import { TooManyAttempts } from '#domain/identity/refused.ts';
import { createSignInLimiter, type SignInRequest } from '../../apps/console/web/sign-in-limiter.ts';
import { setupPeople } from '../domain/identity/people.ts';

const at = new Date('2026-11-22T12:00:00Z');
const stranger = (n: number): SignInRequest => ({
  email: `p${n}@example.org`,
  address: `10.0.${n >> 8}.${n & 255}`,
  browser: null,
});
const outcomeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'in',
    (error: { reason?: string }) => error.reason ?? String(error),
  );
/** Returns the refusal for too many attempts that `work` ends with; null for any other end. */
const refusalOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => (error instanceof TooManyAttempts ? error : null),
  );
/** Waits until all work that needs only one turn of the event loop has run. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a remembered refusal', () => {
  it('equals PostgreSQL’s decision at every moment, and ends at the same time', async () => {
    const t = await setupPeople();
    const limiter = createSignInLimiter({ now: t.now });
    const step = fc.record({
      passSeconds: fc.constantFrom(0, 0, 0, 0, 0, 0, 1, 29, 30, 31, 60),
      address: fc.constantFrom('203.0.113.7', '198.51.100.9', '2001:db8:1:2::1', '2001:db8:1:2::2'),
      email: fc.constantFrom('ada@example.org', 'ADA@example.org', 'bo@example.org'),
      isRight: fc.constantFrom(...Array<boolean>(40).fill(false), true),
    });
    const seen = { remembered: 0, asked: 0 };
    for (const { passSeconds, address, email, isRight } of fc.sample(step, { numRuns: 400, seed: 7 })) {
      t.pass(passSeconds * 1000);
      const attempt = { subject: passwordSubject(email.toLowerCase()), address };
      const refusal = await refusalOf(
        limiter.run({ email, address, browser: null }, async () => {
          seen.asked += 1;
          await admitAttempt(t.em, attempt, t.now());
          if (isRight) await deleteFailures(t.em.fork(), attempt);
          else throw new Error('wrong');
        }),
      );
      if (refusal === null) continue;
      if (refusal.admissions === null) seen.remembered += 1;
      // PostgreSQL would refuse until the same moment. A refused attempt counts nothing.
      const truth = await refusalOf(admitAttempt(t.em, attempt, t.now()));
      expect(truth?.retryAt).toEqual(refusal.retryAt);
    }
    expect(seen.remembered).toBeGreaterThan(100);
    expect(seen.asked).toBeGreaterThan(50);
  });

  it('takes bounded memory, whatever their number', async () => {
    const limiter = createSignInLimiter({ now: () => at });
    const until = new Date(at.getTime() + 60_000);
    const admissions = { subject: until, pair: until, network: until };
    for (let n = 0; n < 15_000; n += 1)
      await outcomeOf(limiter.run(stranger(n), () => Promise.reject(new TooManyAttempts(until, at, admissions))));
    expect(limiter.size()).toBeLessThanOrEqual(20_000);
    expect(limiter.size()).toBeGreaterThan(10_000);
  });

  it('of strangers does not apply to a known browser, and one of a known browser applies to no other', async () => {
    const clock = { now: at };
    const limiter = createSignInLimiter({ now: () => clock.now });
    const until = new Date(at.getTime() + 60_000);
    const refuse = () =>
      Promise.reject(new TooManyAttempts(until, at, { subject: until, pair: until, network: until }));
    const known = { ...stranger(1), browser: 'ada' };
    await outcomeOf(limiter.run(stranger(1), refuse));
    expect(await outcomeOf(limiter.run(stranger(1), async () => {}))).toBe('too_many_attempts');
    expect(await outcomeOf(limiter.run(known, async () => {}))).toBe('in');
    await outcomeOf(limiter.run(known, refuse));
    expect(await outcomeOf(limiter.run(known, async () => {}))).toBe('too_many_attempts');
    expect(await outcomeOf(limiter.run({ ...known, browser: 'bo' }, async () => {}))).toBe('in');
    expect(await outcomeOf(limiter.run(stranger(2), async () => {}))).toBe('in');
    // PostgreSQL may treat an address that differs in more than ASCII case as another address.
    const accented = (email: string) => ({ email, address: null, browser: null });
    await outcomeOf(limiter.run(accented('é@example.org'), refuse));
    expect(await outcomeOf(limiter.run(accented(' é@EXAMPLE.org'), async () => {}))).toBe('too_many_attempts');
    expect(await outcomeOf(limiter.run(accented('É@example.org'), async () => {}))).toBe('in');
    clock.now = new Date(until.getTime() - 1);
    expect(await outcomeOf(limiter.run(known, async () => {}))).toBe('too_many_attempts');
    clock.now = until;
    expect(await outcomeOf(limiter.run(known, async () => {}))).toBe('in');
    expect(await outcomeOf(limiter.run(stranger(1), async () => {}))).toBe('in');
  });
});

describe('parallel sign-ins', () => {
  it('of strangers run two at a time, 50 wait, and more are refused; known browsers go first', async () => {
    const limiter = createSignInLimiter({ now: () => at });
    const running = { now: 0, most: 0 };
    const held: (() => void)[] = [];
    const hold = () =>
      new Promise<void>((resolve) => {
        running.now += 1;
        running.most = Math.max(running.most, running.now);
        held.push(() => {
          running.now -= 1;
          resolve();
        });
      });
    const work = Array.from({ length: 300 }, (_, n) => limiter.run(stranger(n), hold));
    const refusals = await Promise.all(work.slice(52).map((each) => each.catch((error: unknown) => error)));
    expect(new Set(refusals.map((error) => (error as { reason: string }).reason))).toEqual(new Set(['busy']));
    expect(refusals[0]).toMatchObject({ retryAt: new Date(at.getTime() + 5000) });
    expect(await outcomeOf(limiter.run({ ...stranger(1), browser: 'ada' }, async () => {}))).toBe('in');
    for (let left = 52; left > 0; left -= 1) {
      held.shift()?.();
      await turn();
    }
    await Promise.all(work.slice(0, 52));
    expect(running.most).toBe(2);
  });

  it('hash a bounded number of passwords, and the others are refused before any work', async () => {
    const before = hashLoad();
    const seen: number[] = [];
    const attempts = Array.from({ length: 300 }, () => isPassword('wrong wrong wrong', null, 'sign_in'));
    const watch = setInterval(() => seen.push(hashLoad().running), 1);
    const outcomes = await Promise.all(attempts.map(outcomeOf));
    clearInterval(watch);
    expect(outcomes.filter((outcome) => outcome === 'busy').length).toBe(300 - 56);
    expect(hashLoad().done - before.done).toBe(56);
    expect(Math.max(...seen)).toBeGreaterThan(0);
    expect(Math.max(...seen)).toBeLessThanOrEqual(3);
    expect(hashLoad()).toMatchObject({ running: 0, waiting: 0 });
  });
});
