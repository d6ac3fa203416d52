/** A page that stays open: refreshing parts, input, and the end of its session. */
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { addAuthenticator, closeBrowser, expectQuiet, openVisit, ready, violations } from './browser.ts';
import { pages } from './pages/all.ts';
import { goodPassword, setupConsole } from './setup.ts';
import { insertWebhook } from './webhook-stories.ts';

const timeout = 120_000;
const minuteMs = 60_000;
afterAll(closeBrowser);

/** Answers the page's background requests with a page of another title, and a status. */
const responseParts = (page: Page, status: number) =>
  page.route('**/deliveries', (route) =>
    route.request().headers()['hx-request'] === undefined
      ? route.fallback()
      : route.fulfill({ status, contentType: 'text/html', body: '<title>Another</title><h1>Another page</h1>' }),
  );

it('a refreshing part keeps its content on a wrong response, says that it is not up to date, and continues', {
  timeout,
}, async () => {
  const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:1' });
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  await t.make.delivery({ webhook, dueAt: new Date(Date.now() + 50_000), state: 'running' });
  const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  await page.goto(`/o/${ada.orgId}/webhooks/${webhook.id}/deliveries`);
  await ready(page);
  const part = page.locator('#deliveries');
  const title = await page.title();
  const keepsAll = async (words: string) => {
    await part.getByText(words).waitFor();
    expect(await part.getByRole('link', { name: 'client.started' }).count()).toBe(1);
    expect(await page.locator('[data-announcement]').textContent()).toContain(words);
    expect(await page.title()).toBe(title);
  };

  await responseParts(page, 503);
  await keepsAll('the console does not respond');
  expect(await violations(page)).toEqual([]);
  await page.unroute('**/deliveries');
  await part.getByText('Not up to date').waitFor({ state: 'detached' });
  expect(await page.locator('[data-announcement]').textContent()).toBe('Up to date again');

  // Status 200 without the part in it, for example a proxy's sign-in page.
  await responseParts(page, 200);
  await keepsAll('this is no longer available');
  await page.unroute('**/deliveries');
  await part.getByText('Not up to date').waitFor({ state: 'detached' });

  await t.owner.pool.query('delete from console_session');
  await keepsAll('you are signed out');
  await part.getByRole('link', { name: 'Sign in again' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.getByText('Your session has ended.').waitFor();
});

it('eight visible pages of one browser load over HTTP/1.1, and each shows a new delivery', { timeout }, async () => {
  const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:1' });
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  await t.make.delivery({ webhook, state: 'delivered' });
  const { context } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  const path = `/o/${ada.orgId}/webhooks/${webhook.id}/deliveries`;
  const tabs: Page[] = [];
  for (let count = 0; count < 8; count += 1) {
    const page = await context.newPage();
    const response = await page.goto(path);
    expect((await response?.finished()) ?? null).toBe(null);
    await ready(page);
    // Otherwise a browser without a window may treat pages behind another one as hidden.
    expect(await page.evaluate('[document.visibilityState, performance.getEntries()[0].nextHopProtocol]')).toEqual([
      'visible',
      'http/1.1',
    ]);
    tabs.push(page);
  }
  await t.make.delivery({ webhook, state: 'delivered' });
  for (const page of tabs)
    await expect
      .poll(() => page.locator('#deliveries').getByRole('link', { name: 'client.started' }).count(), {
        timeout: 30_000,
      })
      .toBe(2);
});

it('a page requests nothing while it is hidden or leaves unchanged what has not changed, and catches up', {
  timeout,
}, async () => {
  const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:1' });
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  await t.make.delivery({ webhook, state: 'delivered' });
  const { page, context } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  await context.clock.install();
  let parts = 0;
  page.on('response', (response) => {
    if (response.request().headers()['hx-request'] !== undefined) parts += 1;
  });
  await page.goto(`/o/${ada.orgId}/webhooks/${webhook.id}/deliveries`);
  await ready(page);
  const part = page.locator('#deliveries');
  await page.evaluate('document.querySelector("#deliveries").dataset.kept = ""');
  await context.clock.fastForward(5_000);
  await expect.poll(() => parts).toBeGreaterThanOrEqual(1);

  const show = (state: 'hidden' | 'visible') =>
    page.evaluate(`Object.defineProperties(document, {
      hidden: { value: ${state === 'hidden'}, configurable: true },
      visibilityState: { value: '${state}', configurable: true },
    }) && document.dispatchEvent(new Event('visibilitychange'))`);
  await show('hidden');
  const before = parts;
  await context.clock.fastForward(60_000);
  await t.make.delivery({ webhook, state: 'delivered' });
  expect(parts).toBe(before);
  expect(await page.locator('#deliveries[data-kept]').count()).toBe(1);
  await show('visible');
  await expect.poll(() => part.getByRole('link', { name: 'client.started' }).count(), { timeout: 30_000 }).toBe(2);
});

it('selected text, an open table and a checked row of a part stay while other rows change and as time passes', {
  timeout,
}, async () => {
  const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:1' });
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  const eventId = await t.make.delivery({ webhook, state: 'delivered' });
  const { page, context } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  await context.clock.install();
  for (const path of ['', '/deliveries']) {
    await page.goto(`/o/${ada.orgId}/webhooks/${webhook.id}${path}`);
    await ready(page);
    const row = page.locator('tbody tr', { hasText: eventId });
    // The whole row, which has times that the script writes.
    await row.selectText();
    const selection = () => page.evaluate<string>('String(getSelection())');
    const selected = await selection();
    expect(selected).toContain(eventId);
    if (path === '') await page.locator('.auto-refresh details summary').first().press('Enter');
    else await row.getByRole('checkbox').check();
    expect(await selection()).toBe(selected);
    await t.make.delivery({ webhook, state: 'delivered' });
    const before = await page.locator('tbody tr').count();
    await page.locator('.auto-refresh').dispatchEvent('refresh');
    await expect.poll(() => page.locator('tbody tr').count(), { timeout: 20_000 }).toBeGreaterThan(before);
    await context.clock.fastForward(16_000);
    expect(await selection()).toBe(selected);
    if (path === '') expect(await page.locator('.auto-refresh details[open]').count()).toBe(1);
    else expect(await row.getByRole('checkbox').isChecked()).toBe(true);
  }
});

it('a session warns before it ends, can be extended, and its end loses no input', {
  timeout,
}, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  const { page, context } = visit;
  await context.clock.install();
  const pass = async (minutes: number) => {
    t.pass(minutes * minuteMs);
    await context.clock.fastForward(minutes * minuteMs);
  };
  await page.goto(`/o/${ada.orgId}/webhooks/new`);
  await ready(page);
  const box = page.getByRole('complementary', { name: 'Your session' });
  await page.getByLabel('Description').fill('Typed for half an hour');
  await pass(26);
  expect(await box.count()).toBe(0);
  await pass(2);
  await box.getByText('You will be signed out in two minutes').waitFor();
  expect(await violations(page)).toEqual([]);
  await box.getByRole('button', { name: 'Stay signed in' }).click();
  await box.waitFor({ state: 'detached' });
  await pass(20);
  expect((await t.http(ada).get('/account', { headers: { 'HX-Request': 'true' } })).status).toBe(200);

  await pass(31);
  await box.getByText('You are signed out.').waitFor();
  const [other] = await Promise.all([context.waitForEvent('page'), box.getByRole('link').click()]);
  await other.getByLabel('Email address').fill(ada.email);
  await other.getByLabel('Password').fill(goodPassword);
  await other.getByRole('button', { name: 'Continue' }).click();
  await other.getByLabel('Authenticator code').fill(t.nextCode(ada));
  await other.getByRole('button', { name: 'Continue' }).click();
  await other.getByRole('heading', { name: 'Overview' }).waitFor();
  await box.waitFor({ state: 'detached' });
  await page.getByLabel('URL').fill('https://hooks.example.com/late');
  await page.getByRole('checkbox', { name: 'client.started' }).check();
  await page.getByRole('button', { name: 'Add webhook' }).click();
  await page.getByText('out of date, so nothing was changed').waitFor();
  expect(await page.getByLabel('Description').inputValue()).toBe('Typed for half an hour');
  expectQuiet(visit);
});

it('a submitted form and a copied secret are announced, and a file or Back leaves a form that works', {
  timeout,
}, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const { page, context } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await context.clock.install();
  await page.goto('/account');
  await page.getByText('Create new codes…').click();
  await ready(page);
  // The page stays unchanged, as after every file.
  const headers = { 'content-disposition': 'attachment; filename="codes.txt"' };
  await page.route('**/recovery-codes', (route) => route.fulfill({ headers, body: 'codes' }));
  const button = page.getByRole('button', { name: 'Create recovery codes' });
  await button.click();
  await context.clock.fastForward(500);
  await page.getByRole('button', { name: 'Submitting…' }).waitFor();
  expect(await page.locator('form[aria-busy="true"]').count()).toBe(1);
  expect(await page.locator('[data-announcement]').textContent()).toBe('Submitting…');
  await context.clock.fastForward(30_000);
  await button.waitFor();

  await page.unroute('**/recovery-codes');
  await button.click();
  await page.getByRole('button', { name: /^Copy/ }).click();
  await expect.poll(() => page.locator('[data-announcement]').textContent()).toBe('Copied');
  const codes = page.locator('.shown-once code');
  const first = await codes.textContent();

  await page.goBack();
  await page.getByText('Create new codes…').click();
  await ready(page);
  await button.click();
  await codes.waitFor();
  expect(await codes.textContent()).not.toBe(first);
});

it('a passkey’s form that was stopped asks for the passkey again', { timeout }, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  const { page, context } = visit;
  await addAuthenticator(visit);
  await page.goto('/account');
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByLabel('Name').fill('Laptop');
  await ready(page);
  let isHeld = true;
  await page.route('**/passkey**', (route) =>
    isHeld && route.request().method() === 'POST' ? undefined : route.fallback(),
  );
  const button = page.getByRole('button', { name: 'Create passkey' });
  const sent = page.waitForRequest((request) => request.method() === 'POST');
  await button.click({ noWaitAfter: true });
  await sent;
  await (await context.newCDPSession(page)).send('Page.stopLoading');
  await page.locator('form[aria-busy]').waitFor({ state: 'detached' });
  isHeld = false;
  await button.click();
  await page.getByText('“Laptop” added.').waitFor();
});

it('on a phone the whole navigation is visible, and at 1,200 pixels no time wraps', { timeout }, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const phone = await openVisit(t.origin, { sessionToken: ada.sessionToken, screen: 'phone' });
  await phone.page.goto(`/o/${ada.orgId}`);
  const edges = await phone.page.locator('nav.sections a').evaluateAll((links) =>
    // biome-ignore lint/suspicious/noExplicitAny: the tests' types know no DOM
    links.map((link: any) => ({ right: link.getBoundingClientRect().right, cut: link.scrollWidth > link.clientWidth })),
  );
  expect(edges.length).toBeGreaterThanOrEqual(7);
  expect(edges.filter(({ right, cut }) => right > 390 || cut)).toEqual([]);

  const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  // With every kind of actor and result; in a log of short entries any time fits.
  await page.goto((await pages.find(({ picture }) => picture === 'audit-log')?.path(t, ada)) ?? '');
  await ready(page);
  // The longest possible time.
  await page.evaluate(
    `document.querySelectorAll('tbody time').forEach((time) => (time.textContent = 'Sep 30, 2026, 10:00 PM'))`,
  );
  const lines = await page.locator('tbody time').evaluateAll((times) =>
    // biome-ignore lint/suspicious/noExplicitAny: as above
    times.map((time: any) => time.getClientRects().length),
  );
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.filter((count) => count !== 1)).toEqual([]);
});

it('a session in use warns before it reaches its maximum', { timeout }, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  await t.owner.pool.query(`update console_session set expires_at = now() + interval '13 minutes'`);
  const { page, context } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  await context.clock.install();
  await page.goto('/account');
  await ready(page);
  await context.clock.fastForward(11 * minuteMs + 30_000);
  await page.getByText('Your session ends in two minutes').waitFor();
  expect(await page.getByRole('button', { name: 'Stay signed in' }).count()).toBe(0);
});
