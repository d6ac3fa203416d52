/** Usage: the calls of an organization's keys, as its page counts them. */
import { expect, it } from 'vitest';
import { sumCalls } from '#test/sum-calls.ts';
import { writeEntries } from '#test/write-entries.ts';
import { shareConsole } from './setup.ts';

const shared = shareConsole();

const readText = (text: string) =>
  text
    .slice(text.indexOf('<main'))
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');

async function setupCalls() {
  const t = shared();
  const ada = await t.enrol();
  const key = await t.make.apiKey({
    creator: { orgId: ada.orgId, userId: ada.personId, roleId: null },
    label: 'Reports',
  });
  const call = { orgId: ada.orgId, keyId: key.id, action: 'api.getOrg', address: '203.0.113.9' };
  const days = (ago: number) => new Date(Date.now() - ago * 86_400_000);
  await writeEntries(t.owner, [
    call,
    call,
    { ...call, action: 'api.getOrgSeats', status: 403, code: 'insufficient_scope', address: '203.0.113.10' },
    { ...call, at: days(20) },
    { ...call, at: days(80) },
    { ...call, at: days(100) },
  ]);
  await sumCalls(t.owner);
  return {
    ...t,
    ada,
    key,
    get: async (span: string) => readText((await t.http(ada).get(`/o/${ada.orgId}/usage?span=${span}`)).text),
  };
}

it('usage counts calls by key and operation over 24 hours, 30 and 90 days, error responses by code and addresses', async () => {
  const t = await setupCalls();
  const day = await t.get('24h');
  expect(day).toMatch(/Reports \S+ getOrg 2 0 /);
  expect(day).toMatch(/Reports \S+ getOrgSeats 0 1 /);
  expect(day).toMatch(/insufficient_scope 403 1 /);
  expect(day).toMatch(/203\.0\.113\.9 .*203\.0\.113\.10|203\.0\.113\.10 .*203\.0\.113\.9/);
  expect(await t.get('30d')).toMatch(/Reports \S+ getOrg 3 0 /);
  expect(await t.get('90d')).toMatch(/Reports \S+ getOrg 4 0 /);
});

it('sums are those of the log: late commits and counts that grow are added once, and outlive its retention', async () => {
  const t = await setupCalls();
  const { pool } = t.owner;
  const compare = async () => {
    await sumCalls(t.owner);
    for (const unit of ['hour', 'day']) {
      const { rows } = await pool.query(
        `select key_id, action, status, code, starts_at, calls::int from call_sum where unit = $1
           except all select key_id, action, status, coalesce(code, ''), date_trunc($1, at, 'UTC'), sum(count)::int
             from audit_entry where key_id is not null and status is not null group by 1, 2, 3, 4, 5`,
        [unit],
      );
      const { rows: missing } = await pool.query(
        `select key_id, action, status, coalesce(code, ''), date_trunc($1, at, 'UTC'), sum(count)::int from audit_entry
           where key_id is not null and status is not null and at > now() - interval '1 day' group by 1, 2, 3, 4, 5
           except all select key_id, action, status, code, starts_at, calls::int from call_sum where unit = $1`,
        [unit],
      );
      expect([unit, rows, missing]).toEqual([unit, [], []]);
    }
  };
  await compare();
  await sumCalls(t.owner); // again: nothing is added twice
  await compare();

  const late = await pool.connect();
  await late.query('begin');
  const insert = `insert into audit_entry (organization_id, key_id, action, status) values ($1, $2, 'api.getOrg', 200)`;
  await late.query(insert, [t.ada.orgId, t.key.id]);
  await pool.query(insert, [t.ada.orgId, t.key.id]);
  await pool.query('select append_audit_chain(100000), sum_calls(100000)');
  await late.query('commit');
  late.release();
  await compare();

  const { rows } = await pool.query<{ fingerprint: Buffer }>('select fingerprint from api_key where id = $1', [
    t.key.id,
  ]);
  for (const count of [2, 3, 5]) {
    await pool.query('select api.record_rejections($1, $2)', [[rows[0]?.fingerprint], [count]]);
    await compare();
  }

  const sums = async () => (await pool.query('select sum(calls)::int as calls from call_sum')).rows[0].calls;
  const before = await sums();
  await pool.query('truncate audit_entry');
  await sumCalls(t.owner);
  expect(await sums()).toBe(before);
});

it('usage is shown to members who may read the log alone, and counts no other organization’s calls', async () => {
  const t = await setupCalls();
  const bo = await t.enrol();
  expect(readText((await t.http(bo).get(`/o/${bo.orgId}/usage`)).text)).toContain('No calls in this period');
  const reader = await t.enrol({ orgId: t.ada.orgId, permissions: ['org.read'] });
  expect((await t.http(reader).get(`/o/${t.ada.orgId}/usage`)).status).toBe(403);
});
