/** Bounds on queued sign-ins and password hashes. */
import { describe, expect, it } from 'vitest';
import { admitAttempt, passwordSubject } from '#domain/identity/attempts.ts';
import { hashLoad, isPassword } from '#domain/identity/password.ts';
import { generateToken } from '#domain/identity/token.ts';
import { createSignInLimiter, type SignInRequest } from '../../apps/console/web/sign-in-limiter.ts';
import { blockSubject, setupPeople } from '../domain/identity/people.ts';

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
/** Waits until all work that needs only one turn of the event loop has run. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a remembered refusal', () => {
  it('applies to every spelling of its address, and to no known browser', async () => {
    const t = await setupPeople();
    const limiter = createSignInLimiter(t.em, t.now);
    const subject = passwordSubject('info.a@xn--bcher-kva.example.org');
    await blockSubject(t.em, subject, t.now());
    expect(await outcomeOf(admitAttempt(t.em, { subject, address: '192.0.2.1' }, t.now()))).toBe('too_many_attempts');
    const from = (email: string, browser: string | null = null) => {
      const request = { email, address: '192.0.2.2', browser };
      return outcomeOf(limiter.run(request, async () => {}));
    };
    for (const email of ['info.a@bücher.example.org', ' INFO.A@XN--BCHER-KVA.example.org', 'info.a@bücher.example.org'])
      expect(await from(email)).toBe('too_many_attempts');
    expect(await from('info.b@bücher.example.org')).toBe('in');
    expect(await from('info.a@bücher.example.org', generateToken())).toBe('in');
  });
});

describe('parallel sign-ins', () => {
  it('of strangers run two at a time, 50 wait, and more are refused; known browsers go first', async () => {
    const t = await setupPeople();
    const limiter = createSignInLimiter(t.em, () => at);
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
    expect(await outcomeOf(limiter.run({ ...stranger(1), browser: generateToken() }, async () => {}))).toBe('in');
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
    const attempts = Array.from({ length: 300 }, () => isPassword('wrong wrong wrong', null));
    const watch = setInterval(() => seen.push(hashLoad().running), 1);
    const outcomes = await Promise.all(attempts.map(outcomeOf));
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
