/** The audit log in a browser: filter, details and CSV. */
import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { writeEntries } from '#test/write-entries.ts';
import { closeBrowser, expectQuiet, openVisit, ready } from './browser.ts';
import { setupConsole } from './setup.ts';
import { insertWebhook } from './webhook-stories.ts';

const timeout = 120_000;
afterAll(closeBrowser);

describe.each(inject('journeyScreens'))('on a %s screen', (screen) => {
  it('a person finds the rejected reads of a key, opens one, and downloads them as CSV', { timeout }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const key = await t.make.apiKey({
      creator: { orgId: ada.orgId, userId: ada.personId, roleId: null },
      label: '=1+1',
    });
    const entry = { orgId: ada.orgId, personId: ada.personId, keyId: key.id, address: '203.0.113.5' };
    const [, rejected = ''] = await writeEntries(t.owner, [
      { ...entry, at: new Date('2026-11-20T08:00:00Z') },
      {
        ...entry,
        at: new Date('2026-11-20T09:00:00Z'),
        action: 'api.getFirmOutcomes',
        status: 403,
        code: 'insufficient_scope',
      },
    ]);
    const visit = await openVisit(t.origin, { screen, sessionToken: ada.sessionToken });
    const { page } = visit;
    await page.goto(`/o/${ada.orgId}/audit-log`);
    await ready(page);
    // On a wide screen the controls are open.
    if (screen === 'phone') await page.getByText('Filter', { exact: true }).click();
    // Times in the form are in the viewer's zone, and the page shows the zone.
    await page.getByText('Times are in America/New_York').waitFor();
    await page.getByLabel('Result').selectOption({ label: 'Denied' });
    await page.getByLabel('API key').selectOption(key.id);
    await page.getByLabel('From').fill('2026-11-20T03:30');
    await page.getByLabel('To', { exact: true }).fill('2026-11-20T04:30');
    await page.getByRole('button', { name: 'Apply' }).click();
    await ready(page);
    expect(await page.locator('tbody tr').count()).toBe(1);
    expect(await page.getByLabel('From').inputValue()).toBe('2026-11-20T03:30');

    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download filtered CSV' }).click();
    const file = readFileSync(await (await downloading).path(), 'utf8');
    expect(file.split('\r\n').length).toBe(3);
    expect(file).toContain(
      '"2026-11-20T09:00:00.000Z","2026-11-20T09:00:00+00:00","API key “=1+1”","Was denied access to the outcomes (getFirmOutcomes)"',
    );
    expect(file).toContain(`"'=1+1"`);
    expect(file).toContain(rejected);

    await page.getByRole('link', { name: 'Was denied access to the outcomes' }).click();
    await page.getByRole('heading', { name: 'Event details' }).waitFor();
    await ready(page);
    const text = (await page.locator('main').textContent()) ?? '';
    for (const part of [
      'Nov 20, 2026',
      '4:00',
      '2026-11-20T09:00:00.000000Z',
      '203.0.113.5',
      '403 insufficient_scope',
      rejected,
      'Ada Rivers',
    ])
      expect(text).toContain(part);
    await page.goto(`/o/${ada.orgId}/audit-log?action=audit_log.download`);
    expect(await page.locator('tbody tr').count()).toBe(1);
    expectQuiet(visit);
  });
});

it('in the hour that is repeated as summer time ends, a range to a time in it has both, in filters and redeliveries, and each names its zone', {
  timeout,
}, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  // 1:40 of summer and of winter time in Dublin, and a time after the range.
  const times = ['2025-10-26T00:40:00Z', '2025-10-26T01:40:00Z', '2025-10-26T01:50:00Z'].map((at) => new Date(at));
  for (const at of times) {
    await writeEntries(t.owner, [{ orgId: ada.orgId, personId: ada.personId, at }]);
    await t.make.delivery({ webhook, state: 'delivered', createdAt: at });
  }
  const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken, zone: 'Europe/Dublin' });
  const { page } = visit;
  for (const [path, from, until, shown] of [
    ['audit-log', '2025-10-26T01:35', '2025-10-26T01:45', ['GMT', 'GMT+1']],
    ['deliveries', '2025-10-26T01:35', '2025-10-26T01:45', ['GMT', 'GMT+1']],
    ['deliveries', '2025-10-26T01:45', '2025-10-26T02:00', ['GMT', 'GMT']],
  ] as const) {
    await page.goto(`/o/${ada.orgId}/${path}`);
    await ready(page);
    await page.getByLabel('From').fill(from);
    await page.getByLabel('To', { exact: true }).fill(until);
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByRole('link', { name: 'Clear all' }).waitFor();
    await ready(page);
    const found = await page.locator('tbody time:not([data-exact])').allTextContents();
    expect([path, found.map((text) => text.replace(/\s/g, ' ').split(' ').at(-1))]).toEqual([path, shown]);
    for (const text of found) expect(text.replace(/\s/g, ' ')).toMatch(/^Oct 26, 2025, 1:[45]0 AM GMT/);
  }

  // Only events of the last 30 days are redelivered.
  vi.setSystemTime('2025-11-01T12:00:00Z');
  onTestFinished(() => void vi.useRealTimers());
  await page.goto(`/o/${ada.orgId}/webhooks/${webhook.id}/redeliver`);
  await ready(page);
  const range = page.getByRole('region', { name: 'Time range' });
  await range.getByText('Times are in Europe/Dublin').waitFor();
  await range.getByLabel('From').fill('2025-10-26T01:35');
  await range.getByLabel('To').fill('2025-10-26T01:45');
  await range.getByRole('button', { name: 'Redeliver time range…' }).click();
  const shown = 'Events from Oct 26, 2025, 1:35 AM GMT+1 to Oct 26, 2025, 1:45 AM GMT';
  await page.getByText(`${shown}: 2 events`).waitFor();
  await ready(page);
  await page.getByRole('button', { name: 'Redeliver 2 events' }).click();
  await page.getByText(shown).waitFor();
  const { rows } = await t.owner.pool.query(
    'select api.utc(range_from) as "from", api.utc(range_to) as "to" from redelivery',
  );
  expect(rows).toEqual([{ from: '2025-10-26T00:35:00.000Z', to: '2025-10-26T01:45:00.000Z' }]);
  expectQuiet(visit);
});

it('a viewer whose zone has no name finds entries by the times that the page shows, and one without a zone by UTC', {
  timeout,
}, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  await writeEntries(t.owner, [{ orgId: ada.orgId, at: new Date('2025-11-20T08:00:30Z') }]);
  for (const { zone, from, named } of [
    { zone: 'GMT+02:00', from: '2025-11-20T10:00', named: '+02:00' },
    { zone: 'Etc/Unknown', from: '2025-11-20T08:00', named: 'UTC' },
  ]) {
    const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken, zone });
    const { page } = visit;
    await page.goto(`/o/${ada.orgId}/audit-log`);
    await ready(page);
    await page.getByText(`Times are in ${named}.`, { exact: true }).waitFor();
    await page.getByLabel('From').fill(from);
    await page.getByLabel('To', { exact: true }).fill(from.replace(':00', ':01'));
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByRole('link', { name: 'Clear all' }).waitFor();
    await ready(page);
    await page.getByText(`Times are in ${named}.`, { exact: true }).waitFor();
    expect([zone, await page.locator('tbody tr').count()]).toEqual([zone, 1]);
    expectQuiet(visit);
  }
});
