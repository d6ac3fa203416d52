/** Behavior of the frame of every page, in a real browser. */
import { afterAll, describe, expect, it } from 'vitest';
import { addPasskey, closeBrowser, expectQuiet, fieldFocused, openVisit, ready } from './browser.ts';
import { pages } from './pages/all.ts';
import { codeAt, goodPassword, setupConsole } from './setup.ts';

const timeout = 120_000;
const minuteMs = 60_000;
afterAll(closeBrowser);

describe('in a browser', () => {
  it('an added passkey is required again after 5 minutes, and the input is then submitted', {
    timeout,
  }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken });
    const { page } = visit;
    await addPasskey(visit, 'Laptop <b>of Ada</b>');
    await page.getByRole('rowheader', { name: 'Laptop <b>of Ada</b>' }).waitFor();

    t.pass(6 * minuteMs);
    await page.goto('/account/password');
    await page.getByRole('heading', { name: 'Confirm your identity' }).waitFor();
    await ready(page);
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await page.getByLabel('Current password').fill(goodPassword);
    await page.getByLabel('New password').fill('quiet-lantern-otter-ballad');
    await page.getByRole('button', { name: 'Change password' }).click();
    await page.getByText('Password changed').waitFor();
    expectQuiet(visit);
  });

  it('every column of a list is in sight on a phone, a tablet and small and large laptops', { timeout }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
    const clipped: string[] = [];
    for (const name of ['deliveries-all', 'webhooks', 'keys', 'audit-log', 'members', 'account']) {
      const listed = pages.find(({ picture }) => picture === name);
      await page.goto((await listed?.path(t, ada)) ?? '');
      await page.getByRole('rowheader').first().waitFor();
      for (const width of [390, 768, 1_000, 1_200, 1_440]) {
        await page.setViewportSize({ width, height: 900 });
        const hidden = await page.evaluate(
          `[...document.querySelectorAll('.table-frame')].some((frame) => frame.scrollWidth > frame.clientWidth)`,
        );
        if (hidden) clipped.push(`${name} at ${width} px`);
      }
    }
    expect(clipped).toEqual([]);
  });

  it('on a phone a delivery’s checkbox and status are on the line of its event type', { timeout }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken, screen: 'phone' });
    await page.goto((await pages.find(({ picture }) => picture === 'deliveries-all')?.path(t, ada)) ?? '');
    await ready(page);
    const rows = await page.evaluate<boolean[]>(`[...document.querySelectorAll('tbody tr')].map((row) => {
      const name = row.querySelector('th a').getBoundingClientRect();
      return ['input[type=checkbox]', '.badge'].every((selector) => {
        const box = row.querySelector(selector).getBoundingClientRect();
        return box.top < name.bottom && box.bottom > name.top;
      });
    })`);
    expect(rows.length).toBeGreaterThan(1);
    expect(rows).toEqual(rows.map(() => true));
  });

  it('the times below a chart stay inside the chart on every screen', { timeout }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
    await pages.find(({ picture }) => picture === 'deliveries-all')?.path(t, ada);
    await page.goto(`/o/${ada.orgId}`);
    await ready(page);
    // The longest possible time.
    await page.evaluate(
      `document.querySelectorAll('.x-axis time').forEach((label) => (label.textContent = 'Sep 30, 2026, 10:00 PM'))`,
    );
    for (const width of [390, 768, 1_000, 1_200, 1_440]) {
      await page.setViewportSize({ width, height: 900 });
      const outside = await page.evaluate(
        `[...document.querySelectorAll('.x-axis > span')].filter((label) =>
          label.getBoundingClientRect().right > label.closest('figure').getBoundingClientRect().right + 1).length`,
      );
      expect([width, outside]).toEqual([width, 0]);
    }
    expect(await page.locator('.x-axis > span').count()).toBeGreaterThan(0);
  });

  it('after sign-out, the back button shows no page', { timeout }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
    await page.goto(`/o/${ada.orgId}`);
    await page.goto('/account');
    await page.locator('details.menu summary').click();
    await page.getByRole('button', { name: 'Sign out' }).first().click();
    await page.getByText('You are signed out.').waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.content()).not.toContain(ada.email);
  });

  it('times are in the viewer’s zone with UTC on hover, and a button copies a secret', { timeout }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken });
    const { page } = visit;
    await visit.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.goto('/account');
    await ready(page);
    const signedIn = page.locator('time:not([data-relative])').first();
    const iso = (await signedIn.getAttribute('datetime')) ?? '';
    expect(await signedIn.getAttribute('title')).toBe(`${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`);
    const inNewYork = new Intl.DateTimeFormat('en-US', {
      dateStyle: 'medium',
      timeStyle: 'short',
      timeZone: 'America/New_York',
    });
    // The kind of space between the parts depends on the browser's version.
    const spaced = (text: string | null) => (text ?? '').replace(/\s/g, ' ');
    expect(spaced(await signedIn.textContent())).toBe(spaced(inNewYork.format(new Date(iso))));
    // A line never begins with AM or PM.
    expect(await signedIn.textContent()).toMatch(/\d[\u00a0\u202f][AP]M$/);

    await page.getByText('Create new codes…').click();
    await page.getByRole('button', { name: 'Create recovery codes' }).click();
    await page.getByRole('button', { name: /^Copy/ }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const copied = await page.evaluate('navigator.clipboard.readText()');
    expect(copied).toBe(await page.locator('.shown-once code').textContent());
    expectQuiet(visit);
  });

  it('times, and those of a filter, are in the zone that the organization chose, whatever the viewer’s', {
    timeout,
  }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    await t.owner.pool.query(
      `insert into organization_setting (organization_id, time_zone) values ($1, 'Asia/Tokyo')`,
      [ada.orgId],
    );
    const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken });
    const { page } = visit;
    await page.goto(`/o/${ada.orgId}/audit-log`);
    await ready(page);
    const shown = page.locator('main time:not([data-relative])').first();
    const iso = (await shown.getAttribute('datetime')) ?? '';
    const inTokyo = new Intl.DateTimeFormat('en-US', {
      dateStyle: 'medium',
      timeStyle: 'short',
      timeZone: 'Asia/Tokyo',
    });
    const spaced = (text: string | null) => (text ?? '').replace(/\s/g, ' ');
    expect(spaced(await shown.textContent())).toBe(spaced(inTokyo.format(new Date(iso))));
    expect(await page.locator('[data-zone-name]').first().textContent()).toBe('Asia/Tokyo');
    expectQuiet(visit);
  });

  it('a receipt on paper has neither frame nor links of the console, and each time also in UTC', {
    timeout,
  }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const grant = await t.make.grant({ professional: { orgId: ada.orgId, userId: ada.personId, roleId: null } });
    await t.owner.pool.query(
      `update client_grant set status = 'ended', end_reason = 'ended', ends_at = now() where id = $1`,
      [grant.id],
    );
    const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken });
    const { page } = visit;
    await page.goto(`/o/${ada.orgId}/clients/${grant.id}/receipt`);
    await ready(page);
    const ofScreen = page.locator('nav, header.top, main button, .screen-only');
    const visible = async () => (await ofScreen.all()).length - (await ofScreen.filter({ visible: false }).count());
    expect(await visible()).toBeGreaterThan(3);
    await page.emulateMedia({ media: 'print' });
    expect(await visible()).toBe(0);
    expect(await page.getByText('Shown as ended from', { exact: true }).first().isVisible()).toBe(true);
    const after = await page.evaluate(`getComputedStyle(document.querySelector('main time'), '::after').content`);
    expect(after).toMatch(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/);
    expectQuiet(visit);
  });

  it('everything except passkeys works without a script and by keyboard', { timeout }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const { page, context } = await openVisit(t.origin, { script: false });
    const { keyboard } = page;
    await page.goto('/sign-in');
    await fieldFocused(page);
    await keyboard.type(ada.email);
    await keyboard.press('Tab');
    await keyboard.type(goodPassword);
    await keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Your second factor' }).waitFor();
    t.pass(30_000);
    await fieldFocused(page);
    await keyboard.type(codeAt(ada.totpSecret, t.now()));
    await keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.locator('details.menu summary').focus();
    await keyboard.press('Enter');
    await page.getByRole('link', { name: 'Your account' }).focus();
    await keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Your account' }).waitFor();
    expect(await page.locator('time').first().textContent()).toMatch(/ UTC$/);
    await context.close();
  });
});
