/** Every page at 320 px, in forced colors, its dates, and each form after a submit that was stopped. */
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { causes } from '#domain/webhooks/causes.ts';
import { routes } from '../../apps/console/routes.ts';
import { closeBrowser, openVisit, ready } from './browser.ts';
import { autoRefreshRoutes, pages } from './pages/all.ts';
import { setupConsole } from './setup.ts';

afterAll(closeBrowser);

/** Submits a form of the page twice, as a double click does. */
const submitTwice = (page: Page, index: number) =>
  page.evaluate(`{
    const form = document.querySelectorAll('form[method="post"]')[${index}];
    form.noValidate = true;
    for (const _ of 'ab') form.requestSubmit(form.querySelector('[type=submit]'));
  }`);

/** The forms that were stopped, by their text; the paths that they post to, and those of passkeys' forms. */
interface Stopped {
  forms: Set<string>;
  paths: Set<string>;
  passkeyPaths: Set<string>;
}

/**
 * Submits each form of the page twice, stops it as Esc does, and does it again; not those in
 * `stopped`, which are in the frame of every page. Returns the forms that did not post once each
 * time. What they post reaches no server, but checks of the second factor do. Forms of passkeys are
 * tested with an authenticator, in `open-page.browser.test.ts`.
 */
async function stopEveryForm(page: Page, stopped: Stopped): Promise<string[]> {
  let posts = 0;
  await page.route('**', (route) => {
    const request = route.request();
    if (request.method() !== 'POST' || request.headers()['x-step-up-check'] !== undefined) return route.fallback();
    posts += 1;
    return Promise.resolve();
  });
  const debug = await page.context().newCDPSession(page);
  const forms = page.locator('form[method="post"]');
  const found = await forms.evaluateAll((all) =>
    // biome-ignore lint/suspicious/noExplicitAny: the tests' types know no DOM
    all.map((form: any) => ({
      path: form.getAttribute('action') as string,
      text: form.innerText as string,
      isOfPasskey: form.dataset.passkey !== undefined,
    })),
  );
  const wrong: string[] = [];
  for (const [index, { path, text, isOfPasskey }] of found.entries()) {
    (isOfPasskey ? stopped.passkeyPaths : stopped.paths).add(path);
    const form = `${path} ${text}`;
    if (isOfPasskey || stopped.forms.has(form)) continue;
    stopped.forms.add(form);
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
      ...titles.filter((text) => /:\\d\\d UTC/.test(text))];
  }`);

/**
 * Returns the dates and times that are no `time`, so that the script cannot show them in the viewer's zone.
 * A chip repeats what was typed in that zone, and a date of UTC says so.
 */
const datesElsewhere = (page: Page) =>
  page.evaluate<string[]>(`{
    const date = /\\b(J(an|u[nl])|Feb|Ma[ry]|A(pr|ug)|Sep|Oct|Nov|Dec)[a-z]* \\d|\\d{4}-\\d\\d-\\d\\d|\\d:\\d\\d/;
    const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) {
      const { data, parentElement } = texts.currentNode;
      const isUtc = /Z\\)?$|\\d{4} UTC\\b/.test(data.trim());
      const isShown = parentElement.closest('time, code, pre, script, .chip') !== null;
      if (date.test(data) && !isUtc && !isShown) found.push(data.trim());
    }
    found;
  }`);

/** Returns the names of the routes that one of the paths belongs to. */
const listRoutes = (paths: ReadonlySet<string>) =>
  routes
    .filter(({ method }) => method === 'POST')
    .filter(({ path }) => [...paths].some((one) => new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`).test(one)))
    .map(({ name }) => name);

/** Returns the codes of causes that people see. */
const codesIn = async (page: Page) => {
  const text = await page.locator('body').innerText();
  return causes.filter((code) => code.includes('_') && text.includes(code));
};

/** Returns what is wrong with the page as it is shown. */
async function listWrong(page: Page): Promise<string[]> {
  const wrong = [
    ...(await unmarked(page)),
    ...(await inOtherZones(page)),
    ...(await datesElsewhere(page)),
    ...(await codesIn(page)),
  ];
  const wider = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
  if (wider !== 0) wrong.push(`the page is ${wider} px wider than the screen`);
  if (await page.evaluate('localStorage.length + sessionStorage.length > 0')) wrong.push('the page stores something');
  return wrong;
}

async function noteRoute(page: Page, route: string, routesWith: Record<string, Set<string>>): Promise<void> {
  for (const [selector, routes] of Object.entries(routesWith))
    if ((await page.locator(selector).count()) > 0) routes.add(route);
}

it('every page fits 320 px, marks the current page without color, has local dates and no code of a cause, stores nothing, replaces lost secrets, and posts each form once, again after Esc', {
  timeout: 300_000,
}, async () => {
  const t = await setupConsole();
  const ada = await t.enrol({ name: 'Ada Rivers' });
  const hers = await openVisit(t.origin, { sessionToken: ada.sessionToken, screen: 'narrow' });
  const found: Record<string, string[]> = {};
  const stopped: Stopped = { forms: new Set(), paths: new Set(), passkeyPaths: new Set() };
  /** The routes of pages that have such an element. */
  const routesWith = { '[type=datetime-local]': new Set<string>(), '.auto-refresh[hx-get]': new Set<string>() };
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
    const wrong = await listWrong(page);
    await noteRoute(page, judged.route, routesWith);
    current += await page.locator('nav a[aria-current]').count();
    wrong.push(...(await stopEveryForm(page, stopped)));
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
  expect(stopped.forms.size).toBeGreaterThan(pages.length / 2);
  const posting = routes.filter(({ method }) => method === 'POST').map(({ name }) => name);
  const requested = new Set([...listRoutes(stopped.paths), ...listRoutes(stopped.passkeyPaths)]);
  expect(posting.filter((name) => !requested.has(name))).toEqual([]);
  // Each is tested in the hour that is repeated as summer time ends, in `audit-log.browser.test.ts`.
  expect([...routesWith['[type=datetime-local]']].sort()).toEqual([
    'listAllDeliveries',
    'listAuditEntries',
    'listDeliveries',
    'showRedeliver',
  ]);
  // Each keeps the focus of its controls, in `keyboard.browser.test.ts`.
  expect([...routesWith['.auto-refresh[hx-get]']].sort()).toEqual(autoRefreshRoutes);
  expect(current).toBeGreaterThan(pages.length / 2);
});
