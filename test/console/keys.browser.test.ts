/** The life of a key, in a real browser. */
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { listKeys } from '#domain/keys/list.ts';
import { startTestApi } from '#test/setup.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { closeBrowser, expectQuiet, openVisit, ready, violations } from './browser.ts';
import { setupConsole } from './setup.ts';

const timeout = 120_000;
const keyForm = /^aln_us_[0-9A-Za-z]{40}$/;
afterAll(closeBrowser);

/** A console whose pages name an API that runs on its database. */
async function setupWithApi() {
  const port = await getFreePort();
  const t = await setupConsole({ API_URL: `http://127.0.0.1:${port}` });
  const api = await startTestApi(t.database, { PORT: String(port) });
  return { ...t, api };
}

/** Parses the `curl` line of the page as a shell does, and makes the call. */
async function callAs(curlLine: string): Promise<Response> {
  const [, name = '', value = '', url = ''] = /^curl -H "([^:]+): ([^"]+)" (\S+)$/.exec(curlLine) ?? [];
  return fetch(url, { headers: { [name]: value } });
}

describe.each(inject('journeyScreens'))('on a %s screen', (screen) => {
  it('an owner creates a key, copies the curl line, reads with it, and revokes it while a reader runs', {
    timeout,
  }, async () => {
    const t = await setupWithApi();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const visit = await openVisit(t.origin, { screen, sessionToken: ada.sessionToken });
    const { page, context } = visit;
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: t.origin });

    await page.goto(`/o/${ada.orgId}`);
    await page.getByRole('link', { name: 'Create API key' }).click();
    await page.getByLabel('Name').fill('Monthly report');
    await page.getByLabel('org.read').check();
    // The date field appears only when an end date is wanted.
    expect(await page.getByLabel('Last day').isVisible()).toBe(false);
    await page.getByLabel('Custom date').check();
    expect(await page.getByLabel('Last day').isVisible()).toBe(true);
    await page.getByLabel('In 90 days').check();
    await page.getByRole('button', { name: 'Create API key' }).click();
    await page.getByRole('heading', { name: 'API key created' }).waitFor();
    await ready(page);
    await page.getByRole('button', { name: 'Copy curl command' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const line = await page.evaluate<string>('navigator.clipboard.readText()');
    const response = await callAs(line);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ name: 'Harbor Family Law' });
    const key = ((await page.getByRole('region', { name: 'API key' }).last().textContent()) ?? '').trim();
    expect(key).toMatch(keyForm);

    await page.getByRole('link', { name: 'I’ve saved it' }).click();
    await page.getByRole('heading', { name: 'Monthly report' }).waitFor();
    expect(await page.content()).not.toContain(key);
    expect(await page.getByText('127.0.0.1').count()).toBeGreaterThan(0);

    // Reads within its limit, until it is rejected.
    const statuses: number[] = [];
    const deadline = Date.now() + 60_000;
    const reader = (async () => {
      while (statuses.at(-1) !== 401 && Date.now() < deadline) {
        statuses.push((await callAs(line)).status);
        await wait(700);
      }
    })();
    await page.getByRole('link', { name: 'Revoke key…' }).click();
    await page.getByRole('button', { name: /^Revoke API key/ }).click();
    await page.getByText('API key revoked').waitFor();
    expect((await callAs(line)).status).toBe(401);
    await reader;
    expect(statuses).toEqual([...Array(statuses.length - 1).fill(200), 401]);
    expect(statuses.length).toBeGreaterThan(1);
    expectQuiet(visit);
  });

  it('a key whose creator loses the role gets 403, and its page explains why', { timeout }, async () => {
    const t = await setupWithApi();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const bo = await t.make.member({
      orgId: ada.orgId,
      name: 'Bo Lindqvist',
      permissions: ['org.read', 'org.keys.manage'],
    });
    const { id, key } = await t.make.apiKey({ creator: bo, scopes: ['org.read'], label: 'Calendar' });
    const read = async () => (await t.api.get(`/v1/orgs/${ada.orgId}`, { key })).status;
    expect(await read()).toBe(200);
    await t.make.permissionLost(bo, 'org.read');
    expect(await read()).toBe(403);
    const visit = await openVisit(t.origin, { screen, sessionToken: ada.sessionToken });
    await visit.page.goto(`/o/${ada.orgId}/keys`);
    await visit.page.getByText('Inactive', { exact: true }).waitFor();
    await visit.page.getByRole('link', { name: 'Calendar' }).click();
    await visit.page.getByText('no longer has any of its permissions').waitFor();
    // The remedy that the page names: a member who holds the scopes rotates it.
    await visit.page.getByRole('link', { name: 'Rotate key…' }).click();
    await visit.page.getByText('You will be the creator of the new key').waitFor();
    await visit.page.getByRole('button', { name: 'Rotate API key' }).click();
    const made = visit.page.getByRole('region', { name: 'API key' }).last();
    const successor = ((await made.textContent()) ?? '').trim();
    expect((await t.api.get(`/v1/orgs/${ada.orgId}`, { key: successor })).status).toBe(200);
    const keys = await listKeys(t.owner, ada.orgId, t.now());
    expect(keys.find((each) => each.id !== id)?.creatorId).toBe(ada.personId);
    expectQuiet(visit);
  });

  it('a leaked key is pasted, found and revoked, and no page shows it', { timeout }, async () => {
    const t = await setupWithApi();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const { key } = await t.make.apiKey({
      creator: { orgId: ada.orgId, userId: ada.personId, roleId: null },
      label: 'Report',
    });
    const visit = await openVisit(t.origin, { screen, sessionToken: ada.sessionToken });
    const { page } = visit;
    await page.goto(`/o/${ada.orgId}/keys`);
    await page.getByRole('link', { name: 'Report a leaked key' }).click();
    await page.getByLabel('API key, or text that contains it').fill('no key at all');
    await page.getByRole('button', { name: 'Find API key' }).click();
    await page.getByText('This text contains no API key').waitFor();
    expect(await page.getByLabel('API key, or text that contains it').inputValue()).toBe('');
    await page.getByLabel('API key, or text that contains it').fill(`export KEY=${key}`);
    await page.getByRole('button', { name: 'Find API key' }).click();
    await page.getByText('You pasted this key').waitFor();
    expect(page.url() + (await page.content())).not.toContain(key);
    await page.getByRole('button', { name: /^Revoke API key/ }).click();
    await page.getByText('API key revoked').waitFor();
    expect((await t.api.get(`/v1/orgs/${ada.orgId}`, { key })).status).toBe(401);
    expectQuiet(visit);
  });

  it('names of any kind break no page, in light and dark', { timeout }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol({ name: '<b>Ada</b> \u202eRivers' });
    for (const label of ['<script>alert(1)</script>', '=1+1', '\u202eتقرير', 'W'.repeat(100)])
      await t.make.apiKey({ creator: { orgId: ada.orgId, userId: ada.personId, roleId: null }, label });
    for (const scheme of ['light', 'dark'] as const) {
      const visit = await openVisit(t.origin, { screen, scheme, sessionToken: ada.sessionToken });
      for (const path of ['keys', 'audit-log']) {
        await visit.page.goto(`/o/${ada.orgId}/${path}`);
        await ready(visit.page);
        await visit.page.locator('table').getByText('<script>alert(1)</script>').first().waitFor();
        const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
        expect(await visit.page.evaluate(overflow)).toBe(0);
        expect(await violations(visit.page)).toEqual([]);
      }
      expectQuiet(visit);
    }
  });
});
