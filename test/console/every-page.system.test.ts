/** Every page at 320 px, in forced colors, its times, and each form after a submit that was stopped. */
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { causes } from '#domain/webhooks/causes.ts';
import { closeBrowser, openVisit, ready } from './browser.ts';
import { pages } from './pages/all.ts';
import { setupConsole } from './setup.ts';

afterAll(closeBrowser);

/** Submits a form of the page twice, as a double click does. */
const submitTwice = (page: Page, index: number) =>
  page.evaluate(`{
    const form = document.querySelectorAll('form[method="post"]')[${index}];
    form.noValidate = true;
    for (const _ of 'ab') form.requestSubmit(form.querySelector('[type=submit]'));
  }`);

/**
 * Submits each form of the page twice, stops it as Esc does, and does it again; not those in
 * `tested`, which are in the frame of every page. Returns the forms that did not post once each
 * time. What they post reaches no server, but checks of the second factor do. Forms of passkeys are
 * tested with an authenticator, in `open-page.browser.test.ts`.
 */
async function stopEveryForm(page: Page, tested: Set<string>): Promise<string[]> {
  let posts = 0;
  await page.route('**', (route) => {
    const request = route.request();
    if (request.method() !== 'POST' || request.headers()['x-step-up-check'] !== undefined) return route.fallback();
    posts += 1;
    return Promise.resolve();
  });
  const debug = await page.context().newCDPSession(page);
  const forms = page.locator('form[method="post"]');
  const kinds = await forms.evaluateAll((all) =>
    // biome-ignore lint/suspicious/noExplicitAny: the tests' types know no DOM
    all.map((form: any) =>
      form.dataset.passkey === undefined ? `${form.getAttribute('action')} ${form.innerText}` : null,
    ),
  );
  const wrong: string[] = [];
  for (const [index, kind] of kinds.entries()) {
    if (kind === null || tested.has(kind)) continue;
    tested.add(kind);
    posts = 0;
    for (const expected of [1, 2]) {
      await submitTwice(page, index);
      await expect
        .poll(() => posts, { timeout: 5_000, interval: 5 })
        .toBeGreaterThanOrEqual(expected)
        .catch(() => wrong.push(`form ${index} did not post a time ${expected}`));
      await debug.send('Page.stopLoading');
      await page.locator('form[aria-busy]').waitFor({ state: 'detached', timeout: 5_000 });
    }
    if (posts > 2) wrong.push(`form ${index} posted ${posts} times`);
  }
  await debug.detach();
  await page.unroute('**');
  return wrong;
}

/**
 * Returns the links of menus that differ from their neighbors by color only, as the current
 * page and tab.
 */
const unmarked = (page: Page) =>
  page.evaluate<string[]>(`[...document.querySelectorAll('nav a[aria-current]')].filter((current) => {
    const marks = (link) => {
      const { textDecorationLine, fontWeight, borderBottomWidth } = getComputedStyle(link);
      return [textDecorationLine, fontWeight, borderBottomWidth].join();
    };
    const others = [...current.closest('nav').querySelectorAll('a:not([aria-current])')];
    return others.some((other) => marks(other) === marks(current));
  }).map((link) => link.textContent.trim() + ' is marked by color only')`);

/** Returns the times and tooltips of charts that are not in the viewer's zone. */
const inOtherZones = (page: Page) =>
  page.evaluate<string[]>(`{
    const formats = [{ dateStyle: 'medium', timeStyle: 'short' }, { dateStyle: 'medium', timeStyle: 'medium' },
      { dateStyle: 'medium' }].map((options) => new Intl.DateTimeFormat(undefined, options));
    const isLocal = (time) => formats.some((format) =>
      time.textContent.startsWith(format.format(new Date(time.dateTime))));
    const times = [...document.querySelectorAll('time[datetime]:not([data-relative])')];
    const titles = [...document.querySelectorAll('svg title')].map(({ textContent }) => textContent);
    [...times.filter((time) => !isLocal(time)).map(({ outerHTML }) => outerHTML),
      ...titles.filter((text) => text.includes('UTC'))];
  }`);

/** Returns the codes of causes that people see. */
const codesIn = async (page: Page) => {
  const text = await page.locator('body').innerText();
  return causes.filter((code) => code.includes('_') && text.includes(code));
};

it('every page fits 320 px, marks the current page without color, has local times and no code of a cause, replaces lost secrets, and posts each form once, again after Esc', {
  timeout: 300_000,
}, async () => {
  const t = await setupConsole();
  const ada = await t.enrol({ name: 'Ada Rivers' });
  const hers = await openVisit(t.origin, { sessionToken: ada.sessionToken, screen: 'narrow' });
  const found: Record<string, string[]> = {};
  const tested = new Set<string>();
  let current = 0;
  let reloaded = 0;
  for (const judged of pages) {
    const { page, context } = judged.signedOut ? await openVisit(t.origin, { screen: 'narrow' }) : hers;
    await page.emulateMedia({ forcedColors: 'active' });
    // No page may ask for the second factor again.
    await t.owner.pool.query(`update console_session set second_factor_at = now() where state = 'full'`);
    await page.goto(await judged.path(t, ada));
    await ready(page);
    await judged.steps?.(page, t, ada);
    await ready(page);
    const wrong = [...(await unmarked(page)), ...(await inOtherZones(page)), ...(await codesIn(page))];
    current += await page.locator('nav a[aria-current]').count();
    const wider = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
    if (wider !== 0) wrong.push(`the page is ${wider} px wider than the screen`);
    wrong.push(...(await stopEveryForm(page, tested)));
    if ((await page.locator('.shown-once').count()) > 0) {
      reloaded += 1;
      await page.reload();
      const links = page.locator('main').getByText('can’t be shown again').locator('xpath=following::a[1]');
      if ((await links.count()) === 0) wrong.push('a reload does not say how to replace the secret');
    }
    if (wrong.length > 0) found[judged.picture] = wrong;
    if (page !== hers.page) await context.close();
  }
  expect(found).toEqual({});
  expect(reloaded).toBe(6);
  expect(tested.size).toBeGreaterThan(pages.length / 2);
  expect(current).toBeGreaterThan(pages.length / 2);
});
