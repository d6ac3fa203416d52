/** Filters as controls, what is set as chips, and the search of the overview. */
import { expect, it } from 'vitest';
import { unescaped } from '#test/http-visitor.ts';
import { writeEntries } from '#test/write-entries.ts';
import { setupConsole } from './setup.ts';
import { insertWebhook } from './webhook-stories.ts';

async function setup() {
  const t = await setupConsole();
  const ada = await t.enrol({ name: 'Ada Rivers' });
  return { ...t, ada, visitor: t.http(ada), home: `/o/${ada.orgId}` };
}

/** Returns the active filters of a page: the text of each chip, and the address without it. */
const listChips = (text: string) =>
  [...text.matchAll(/<a class="chip" href="([^"]*)">(.*?)<\/a>/gs)].map(([, href = '', chip = '']) => [
    chip
      .replace(/<[^>]*>/g, '')
      .replace(/\s+/g, ' ')
      .trim(),
    unescaped(href),
  ]);

it('each active filter of the deliveries is a chip that removes it and keeps the others', async () => {
  const t = await setup();
  const webhook = await insertWebhook(t, t.ada);
  const list = `${t.home}/deliveries`;
  expect(listChips((await t.visitor.get(list)).text)).toEqual([]);
  const query = `webhook=${webhook.id}&status=retrying&from=2026-11-20T08:00&zone=America/New_York`;
  const { text } = await t.visitor.get(`${list}?${query}`);
  const [first, second, third] = listChips(text);
  expect([first?.[0], second?.[0], third?.[0]]).toEqual([
    'Webhook: Case management × Remove filter',
    'Status: Retrying × Remove filter',
    'From: 2026-11-20 08:00 × Remove filter',
  ]);
  const without = new URL(second?.[1] ?? '', t.origin);
  expect(without.pathname).toBe(list);
  expect(Object.fromEntries(without.searchParams)).toEqual({
    webhook: webhook.id,
    from: '2026-11-20T08:00',
    zone: 'America/New_York',
  });
  expect(listChips((await t.visitor.get(without.pathname + without.search)).text)).toHaveLength(2);
  expect(text).toContain(`<a href="${list}">Clear all</a>`);
});

it('each active filter of the audit log is a chip with the words of its control', async () => {
  const t = await setup();
  const key = await t.make.apiKey({
    creator: { orgId: t.ada.orgId, userId: t.ada.personId, roleId: null },
    label: 'Report',
  });
  const query = `q=fjord&result=denied&action=key.revoke&key=${key.id}&address=203.0.113.0/24&person=${t.ada.personId}`;
  const { text } = await t.visitor.get(`${t.home}/audit-log?${query}`);
  expect(listChips(text).map(([chip]) => chip?.replace(' × Remove filter', ''))).toEqual([
    'Search: fjord',
    'Result: Denied',
    'Event: Revoked an API key',
    expect.stringMatching(/^API key: Report \(.*\)$/),
    'IP address or range: 203.0.113.0/24',
    'Person: Ada Rivers',
  ]);
});

it('an event of the audit log is named by a sentence in the filter, its chip and its details, also an unknown one', async () => {
  const t = await setup();
  const log = `${t.home}/audit-log`;
  const { text } = await t.visitor.get(`${log}?action=thing.of_tomorrow`);
  const [select = ''] = /<select[^>]*name="action".*?<\/select>/s.exec(text) ?? [];
  const options = [...select.matchAll(/<option value="([^"]*)"[^>]*>([^<]*)/g)].map(([, value, label]) => ({
    value,
    label,
  }));
  expect(options.length).toBeGreaterThan(60);
  expect(options.filter(({ label }) => !/^[A-Z][a-z]+ [a-z]/.test(label ?? ''))).toEqual([]);
  expect(options.at(-1)).toEqual({ value: 'thing.of_tomorrow', label: 'Unknown event (thing.of_tomorrow)' });
  expect(listChips(text)[0]?.[0]).toBe('Event: Unknown event (thing.of_tomorrow) × Remove filter');
  const [entryId = ''] = await writeEntries(t.owner, [{ orgId: t.ada.orgId, action: 'key.revoke', status: null }]);
  const details = (await t.visitor.get(`${log}/${entryId}`)).text;
  expect(details).toMatch(/Revoked an API key <a class="quiet" href="[^"]*\/audit-log\?action=key\.revoke">View all/);
  expect(details).not.toContain('>key.revoke<');
});

it('the search of the overview leads from an event, a client, an entry of the log or an address to its row', async () => {
  const t = await setup();
  const webhook = await insertWebhook(t, t.ada);
  const eventId = await t.make.delivery({ webhook });
  const professional = { orgId: t.ada.orgId, userId: t.ada.personId, roleId: null };
  const grant = await t.make.grant({ professional });
  const [entryId = ''] = await writeEntries(t.owner, [{ orgId: t.ada.orgId, address: '203.0.113.77' }]);
  expect((await t.visitor.get(t.home)).text).toContain(`action="${t.home}/search"`);
  const search = (q: string) => t.visitor.get(`${t.home}/search?${new URLSearchParams({ q })}`);
  expect((await search(eventId.toUpperCase())).to).toBe(`${t.home}/deliveries?event=${eventId}`);
  expect((await search(entryId)).to).toBe(`${t.home}/audit-log/${entryId}`);
  expect((await search(' 203.0.113.77 ')).to).toBe(`${t.home}/audit-log?address=203.0.113.77`);
  const client = await search(grant.id);
  expect(client.text).toContain(`href="${t.home}/clients/${grant.id}"`);
  expect(client.text).toContain(`href="${t.home}/audit-log?object=${grant.id}"`);
  expect((await search('Ada')).text).toContain(`href="${t.home}/members?q=Ada&amp;status=all"`);
  expect((await search('01900000-0000-7000-8000-000000000000')).text).toContain('No matches');
  expect((await search('')).text).toContain('No matches');
  // A name is looked up, and the log is searched only when it is asked for.
  expect((await search('Hooks.example')).to).toBe(`${t.home}/webhooks/${webhook.id}`);
  await t.owner.pool.query(`update webhook set description = 'At Öztürk' where id = $1`, [webhook.id]);
  expect((await search('at ozturk')).to).toBe(`${t.home}/webhooks/${webhook.id}`);
  const unknown = (await search('nothing-here')).text;
  expect(unknown).toContain('No matches');
  expect(unknown).toContain(`href="${t.home}/audit-log?q=nothing-here"`);
});

it('the search finds nothing of another organization, and nothing that the member may not see', async () => {
  const t = await setup();
  const webhook = await insertWebhook(t, t.ada);
  const eventId = await t.make.delivery({ webhook });
  const [entryId = ''] = await writeEntries(t.owner, [{ orgId: t.ada.orgId }]);
  const stranger = await t.enrol();
  const plain = await t.enrol({ orgId: t.ada.orgId, permissions: ['org.read'] });
  for (const [person, orgId] of [
    [stranger, stranger.orgId],
    [plain, t.ada.orgId],
  ] as const)
    for (const q of [eventId, entryId, webhook.id])
      expect((await t.http(person).get(`/o/${orgId}/search?q=${q}`)).text).toContain('No matches');
});
