/** A page that stays open: live parts, input, and the end of its session. */
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { closeBrowser, expectQuiet, openVisit, ready, violations } from './browser.ts';
import { pages } from './pages/all.ts';
import { goodPassword, setupConsole } from './setup.ts';
import { insertWebhook } from './webhook-stories.ts';

const timeout = 120_000;
const minuteMs = 60_000;
afterAll(closeBrowser);

/** Answers the page's background requests with a page of another title, and a status. */
const answerParts = (page: Page, status: number) =>
  page.route('**/deliveries', (route) =>
    route.request().headers()['hx-request'] === undefined
      ? route.fallback()
      : route.fulfill({ status, contentType: 'text/html', body: '<title>Another</title><h1>Another page</h1>' }),
  );

it('a live part keeps its content on a wrong response, says that it is not up to date, and continues', {
  timeout,
}, async () => {
  const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:1' });
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  await t.make.delivery({ webhook, nextAttemptAt: new Date(Date.now() + 50_000), started: true });
  const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  await page.goto(`/o/${ada.orgId}/webhooks/${webhook.id}/deliveries`);
  await ready(page);
  const part = page.locator('#deliveries');
  const title = await page.title();
  const keepsAll = async (words: string) => {
    await part.getByText(words).waitFor();
    expect(await part.getByRole('link', { name: 'client.started' }).count()).toBe(1);
    expect(await page.locator('[data-said]').textContent()).toContain(words);
    expect(await page.title()).toBe(title);
  };

  await answerParts(page, 503);
  await keepsAll('the console does not respond');
  expect(await violations(page)).toEqual([]);
  await page.unroute('**/deliveries');
  await part.getByText('Not up to date').waitFor({ state: 'detached' });
  expect(await page.locator('[data-said]').textContent()).toBe('Up to date again');

  // Status 200 without the part in it, for example a proxy's sign-in page.
  await answerParts(page, 200);
  await keepsAll('this is no longer available');
  await page.unroute('**/deliveries');
  await part.getByText('Not up to date').waitFor({ state: 'detached' });

  await t.owner.pool.query('delete from console_session');
  await keepsAll('you are signed out');
  await part.getByRole('link', { name: 'Sign in again' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.getByText('Your session has ended.').waitFor();
});

it('an open page shows a new delivery by its stream of updates, and polls while streams are refused', {
  timeout,
}, async () => {
  const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:1' });
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  const addDelivery = () => t.make.delivery({ webhook, nextAttemptAt: new Date(Date.now() + 3_600_000) });
  await addDelivery();
  const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  const { page } = visit;
  const requests: string[] = [];
  page.on('request', (request) => {
    if (request.headers()['hx-request'] !== undefined) requests.push('part');
    if (request.headers().accept === 'text/event-stream') requests.push('stream');
  });
  const streamed = page.waitForResponse((response) => response.headers()['content-type'] === 'text/event-stream');
  await page.goto(`/o/${ada.orgId}/webhooks/${webhook.id}/deliveries`);
  await ready(page);
  await streamed;
  const rows = page.locator('#deliveries').getByRole('link', { name: 'client.started' });
  expect(await rows.count()).toBe(1);

  await addDelivery();
  await expect.poll(() => rows.count(), { timeout: 30_000 }).toBe(2);
  expect(requests).toEqual(['stream', 'part']);

  await page.route('**/deliveries?version=*', (route) => route.abort());
  await page.reload();
  await addDelivery();
  await expect.poll(() => rows.count(), { timeout: 30_000 }).toBe(3);
  expect(requests.slice(2).filter((kind) => kind === 'part').length).toBeGreaterThan(0);
});

it('an open page polls when the console has no stream left', { timeout }, async () => {
  const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:1', MAX_STREAMS: '1' });
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  const addDelivery = () => t.make.delivery({ webhook, nextAttemptAt: new Date(Date.now() + 3_600_000) });
  await addDelivery();
  const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  const path = `/o/${ada.orgId}/webhooks/${webhook.id}/deliveries`;
  const { page: other } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  const streamed = other.waitForResponse((response) => response.headers()['content-type'] === 'text/event-stream');
  await other.goto(path);
  await streamed;

  const refused = page.waitForResponse((response) => response.status() === 503);
  await page.goto(path);
  await ready(page);
  expect((await refused).request().headers().accept).toBe('text/event-stream');
  await addDelivery();
  const rows = page.locator('#deliveries').getByRole('link', { name: 'client.started' });
  await expect.poll(() => rows.count(), { timeout: 30_000 }).toBe(2);
});

it('a page of settled deliveries that missed an update is polled until it is up to date', { timeout }, async () => {
  const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:1' });
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  await t.make.delivery({ webhook, state: 'delivered' });
  const { page, context } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  await context.clock.install();
  await page.route('**/deliveries?version=*', (route) => route.fulfill({ status: 503 }));
  await page.goto(`/o/${ada.orgId}/webhooks/${webhook.id}/deliveries`);
  await ready(page);
  await t.make.delivery({ webhook, state: 'delivered' });
  await answerParts(page, 503);
  await context.clock.fastForward(31_000);
  const part = page.locator('#deliveries');
  await part.getByText('It tries again automatically').waitFor();

  await page.unroute('**/deliveries');
  await context.clock.fastForward(31_000);
  await part.getByText('Not up to date').waitFor({ state: 'detached' });
  expect(await part.getByRole('link', { name: 'client.started' }).count()).toBe(2);
});

it('polling does not shorten the wait after a refused stream', { timeout }, async () => {
  const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:1' });
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  await t.make.delivery({ webhook, nextAttemptAt: new Date(Date.now() + 50_000), started: true });
  const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  const counts = { stream: 0, part: 0 };
  page.on('request', (request) => {
    if (request.headers()['hx-request'] !== undefined) counts.part += 1;
    if (request.headers().accept === 'text/event-stream') counts.stream += 1;
  });
  await page.route('**/deliveries?version=*', (route) => route.fulfill({ status: 503 }));
  await page.goto(`/o/${ada.orgId}/webhooks/${webhook.id}/deliveries`);
  await ready(page);
  await expect.poll(() => counts.part, { timeout: 60_000 }).toBeGreaterThanOrEqual(8);
  // Each wait is twice the one before; a stream for each poll would be 8 or more.
  expect(counts.stream).toBeLessThan(6);
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

it('a submitted form and a copied secret are announced', { timeout }, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const { page, context } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto('/account');
  await page.getByText('Create new codes…').click();
  await ready(page);
  // 204: the page stays unchanged while the request is in progress.
  await page.route('**/recovery-codes', (route) => route.fulfill({ status: 204 }));
  await page.getByRole('button', { name: 'Create recovery codes' }).click();
  await page.getByRole('button', { name: 'Submitting…' }).waitFor();
  expect(await page.locator('form[aria-busy="true"]').count()).toBe(1);
  expect(await page.locator('[data-said]').textContent()).toBe('Submitting…');

  await page.unroute('**/recovery-codes');
  await page.reload();
  await page.getByText('Create new codes…').click();
  await page.getByRole('button', { name: 'Create recovery codes' }).click();
  await page.getByRole('button', { name: /^Copy/ }).click();
  await expect.poll(() => page.locator('[data-said]').textContent()).toBe('Copied');
});

it('on a phone the whole navigation is visible, and at 1,200 pixels no time wraps', { timeout }, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const phone = await openVisit(t.origin, { sessionToken: ada.sessionToken, screen: 'phone' });
  await phone.page.goto(`/o/${ada.orgId}`);
  const edges = await phone.page.locator('nav.places a').evaluateAll((links) =>
    // biome-ignore lint/suspicious/noExplicitAny: the tests' types know no DOM
    links.map((link: any) => ({ right: link.getBoundingClientRect().right, cut: link.scrollWidth > link.clientWidth })),
  );
  expect(edges.length).toBeGreaterThanOrEqual(7);
  expect(edges.filter(({ right, cut }) => right > 390 || cut)).toEqual([]);

  const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  // With every kind of actor and result; in a log of short entries any time fits.
  await page.goto((await pages.find(({ picture }) => picture === 'activity')?.path(t, ada)) ?? '');
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
