/** Schema `platform`: calls of several sessions, whatever they wait for. */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { expect, it, vi } from 'vitest';
import { setupPlatform, type PlatformValues as Values } from '#test/platform.ts';

const timeout = 120_000;

async function setupSessions() {
  const t = await setupPlatform();
  const [first, second] = [await t.connect(), await t.connect()];
  const { rows } = await second.query<{ pid: number }>('select pg_backend_pid() as pid');
  const pid = rows[0]?.pid ?? 0;
  /** Starts a call of the second session; resolves once it has ended or waits for the first. */
  const startSecond = async (call: () => Promise<string>) => {
    let hasEnded = false;
    const result = call().finally(() => {
      hasEnded = true;
    });
    await vi.waitFor(
      async () => {
        const { rows: waits } = await t.owner.pool.query('select cardinality(pg_blocking_pids($1)) > 0 as waits', [
          pid,
        ]);
        expect(hasEnded || waits[0]?.waits).toBe(true);
      },
      { timeout: 60_000, interval: 2 },
    );
    return { result };
  };
  return { ...t, first, second, startSecond };
}

it('two transactions of one organization never deadlock, whatever their calls and the order of them', {
  timeout,
}, async () => {
  const t = await setupSessions();
  const { organization, member: professional, family, slug } = await t.create();
  const [grant, ended, seat, role, code, subscription] = Array.from({ length: 6 }, () => randomUUID());
  const start = { organization, kind: 'attorney', professional, family };
  for (const id of [grant, ended]) expect(await t.call('start_grant', { ...start, id })).toBe('created');
  let n = 0;
  const calls: [string, () => Values][] = [
    ['put_organization', () => ({ organization, name: `Harbor ${n}`, slug, kind: 'law_firm' })],
    ['put_role', () => ({ organization, id: role, key: 'clerk', name: `C ${n}`, description: '', permissions: [] })],
    ['put_member', () => ({ organization, member: professional, name: `A ${n}`, email: 'a@example.org', roles: [] })],
    ['put_family', () => ({ organization, id: family, name: `Rossi ${n}` })],
    ['put_plan', () => ({ organization, invoiced: 100 + n })],
    ['put_subscription', () => ({ organization, id: subscription, status: 'active', quantity: n })],
    ['put_referral_code', () => ({ organization, id: code, code: 'x', link: `https://x.example/${n}` })],
    ['start_grant', () => ({ ...start, id: grant })],
    ['plan_end', () => ({ organization, id: grant, ends_at: new Date(Date.now() + 3_600_000 + n * 1000) })],
    ['end_grant', () => ({ organization, id: ended })],
    ['give_seat', () => ({ organization, id: seat, grant_id: grant })],
  ];
  const rejected: string[] = [];
  for (const [index, one] of calls.entries())
    for (const other of calls.slice(index + 1)) {
      const run = async ([name, values]: [string, () => Values], by: pg.Client) => {
        n += 1;
        const result = await t.call(name, values(), by);
        if (/^(40|25)/.test(result)) rejected.push(`${one[0]}, ${other[0]}: ${name} ${result}`);
        return result;
      };
      for (const session of [t.first, t.second]) await session.query('begin');
      await run(one, t.first);
      const { result } = await t.startSecond(() => run(other, t.second));
      await run(other, t.first);
      await t.first.query('commit');
      await result;
      await run(one, t.second);
      await t.second.query('commit');
    }
  expect(rejected).toEqual([]);
});

it('two organizations that want one slug at once: the second gets a code, and no error has the slug', {
  timeout,
}, async () => {
  const t = await setupSessions();
  const { organization } = await t.create();
  const put = (slug: string, id: string = randomUUID()) => ({ organization: id, name: 'x', slug, kind: 'court' });
  const pairs: [Values, Values][] = [
    [put('one'), put('one')],
    [put('two'), put('two', organization)],
    [put('three', organization), put('three')],
  ];
  for (const [first, second] of pairs) {
    await t.first.query('begin');
    expect(await t.call('put_organization', first, t.first)).toMatch(/^(created|changed)$/);
    const { result } = await t.startSecond(() => t.call('put_organization', second, t.second));
    await t.first.query('commit');
    expect(await result).toBe('23505 slug_taken: slug');
  }
  // By an import, which writes the table.
  const owner = await t.owner.pool.connect();
  await owner.query('begin');
  await owner.query(`update organization set slug = 'four' where id = $1`, [organization]);
  const { result } = await t.startSecond(() => t.call('put_organization', put('four'), t.second));
  await owner.query('commit');
  owner.release();
  expect(await result).toBe('23505 slug_taken: slug');
});

it('a concurrent start of the same id with another kind gets the name of what differs, and starts nothing', {
  timeout,
}, async () => {
  const t = await setupSessions();
  const { organization, member: professional, family } = await t.create();
  const start = { organization, id: randomUUID(), kind: 'attorney', professional, family };
  await t.first.query('begin');
  expect(await t.call('start_grant', start, t.first)).toBe('created');
  const { result } = await t.startSecond(() => t.call('start_grant', { ...start, kind: 'neutral' }, t.second));
  await t.first.query('commit');
  expect(await result).toBe('23505 grant_differs: kind');
  expect(await t.listEvents()).toEqual(['client.started']);
});
