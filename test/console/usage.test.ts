/** Usage: the calls of an organization's keys, as its page counts them. */
import { expect, it } from 'vitest';
import { getUsage } from '#domain/db/statements/usage.ts';
import { writeLines } from '../domain/activity/lines.ts';
import { shareConsole } from './setup.ts';

const shared = shareConsole();

const textOf = (text: string) =>
  text
    .slice(text.indexOf('<main'))
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');

async function setupCalls() {
  const t = shared();
  const ada = await t.enrol();
  const key = await t.make.apiKey({
    maker: { orgId: ada.orgId, userId: ada.personId, roleId: null },
    label: 'Reports',
  });
  const call = { orgId: ada.orgId, keyId: key.id, action: 'api.getOrg', address: '203.0.113.9' };
  const days = (ago: number) => new Date(Date.now() - ago * 86_400_000);
  await writeLines(t.owner, [
    call,
    call,
    { ...call, action: 'api.getOrgSeats', status: 403, code: 'insufficient_scope', address: '203.0.113.10' },
    { ...call, at: days(20) },
    { ...call, at: days(80) },
    { ...call, at: days(100) },
  ]);
  return {
    ...t,
    ada,
    key,
    get: async (span: string) => textOf((await t.http(ada).get(`/o/${ada.orgId}/usage?span=${span}`)).text),
  };
}

it('usage counts calls by key and operation over 24 hours, 30 and 90 days, refusals by code and addresses', async () => {
  const t = await setupCalls();
  const day = await t.get('24h');
  expect(day).toMatch(/Reports \S+ getOrg 2 0 /);
  expect(day).toMatch(/Reports \S+ getOrgSeats 0 1 /);
  expect(day).toMatch(/insufficient_scope 403 1 /);
  expect(day).toMatch(/203\.0\.113\.9 .*203\.0\.113\.10|203\.0\.113\.10 .*203\.0\.113\.9/);
  expect(await t.get('30d')).toMatch(/Reports \S+ getOrg 3 0 /);
  expect(await t.get('90d')).toMatch(/Reports \S+ getOrg 4 0 /);
});

it('usage says from when it counts when there are more calls than it looks at', async () => {
  const t = await setupCalls();
  const { usage } = await getUsage(t.owner.pool, t.ada.orgId, '90d', new Date(), 2);
  expect(usage.rows.reduce((sum, { answered, refused }) => sum + answered + refused, 0)).toBe(2);
  expect(usage.countedFrom).not.toBeNull();
});

it('usage is shown to members who may read the log alone, and counts no other organization’s calls', async () => {
  const t = await setupCalls();
  const bo = await t.enrol();
  expect(textOf((await t.http(bo).get(`/o/${bo.orgId}/usage`)).text)).toContain('No calls in this period');
  const reader = await t.enrol({ orgId: t.ada.orgId, permissions: ['org.read'] });
  expect((await t.http(reader).get(`/o/${t.ada.orgId}/usage`)).status).toBe(403);
});
