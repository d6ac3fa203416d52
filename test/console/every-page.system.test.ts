/** Every page in a browser, visited once and judged on each screen in each scheme. `PICTURES` saves pictures. */
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { constants, patient } from '#test/constants.ts';
import { routes } from '../../apps/console/routes.ts';
import { closeBrowser, expectQuiet, openVisit, picture, ready, screens, violations } from './browser.ts';
import { autoRefreshRoutes, pages } from './pages/all.ts';
import { listWrong, listWrongWithoutColors, saysHowToReplace } from './pages/judge.ts';
import { createRingMeter } from './pages/ring.ts';
import { listRoutes, type Stopped, stopEveryForm } from './pages/stopped-forms.ts';
import { setupConsole } from './setup.ts';

afterAll(closeBrowser);

const shownOn = ['wide', 'narrow'] as const;
/** The schemes differ only in colors, so the rules about anything else run in the first. */
const schemes = ['light', 'dark'] as const;
const looks = shownOn.flatMap((screen) => schemes.map((colorScheme) => ({ screen, colorScheme })));

type Look = (typeof looks)[number];

/** Shows the page in each of `looks`. Returns what is wrong with it, after the look in which it is. */
async function judgeLooks(page: Page, judge: (look: Look) => Promise<string[]>): Promise<string[]> {
  const wrong: string[] = [];
  for (const look of looks) {
    await page.setViewportSize(screens[look.screen]);
    await page.emulateMedia({ colorScheme: look.colorScheme });
    wrong.push(...(await judge(look)).map((each) => `${look.screen}, ${look.colorScheme}: ${each}`));
  }
  return wrong;
}

/** Returns what is wrong with the page in one look, but for its rings. */
async function judgeLook(page: Page, name: string, { screen, colorScheme }: Look): Promise<string[]> {
  if (process.env.PICTURES) await picture(page, `${name}-${screen}-${colorScheme}`);
  if (colorScheme !== schemes[0]) return violations(page, { colors: true });
  return [...(await violations(page)), ...(await listWrong(page)), ...(await listWrongWithoutColors(page))];
}

/** Adds the page's route to those of the elements, by selector, that it has. */
async function noteRoute(page: Page, route: string, routesWith: Record<string, Set<string>>): Promise<void> {
  for (const [selector, routes] of Object.entries(routesWith))
    if ((await page.locator(selector).count()) > 0) routes.add(route);
}

it('every page has no accessibility violation, fits the screen and 320 px, marks the current page without color, has a focus ring of 3:1, local dates and no code of a cause, stores nothing, replaces lost secrets, and posts each form once, again after Esc', {
  timeout: 1_800_000,
}, async () => {
  const t = await setupConsole({ [constants]: patient });
  const ada = await t.enrol({ name: 'Ada Rivers' });
  // Without motion, because links and buttons would otherwise fade into the other scheme's colors,
  // whose contrast halfway is not that of the page.
  const hers = await openVisit(t.origin, { reducedMotion: 'reduce', sessionToken: ada.sessionToken });
  const listFaintRings = createRingMeter((await hers.context.browser()?.newPage()) as Page);
  const found: Record<string, string[]> = {};
  const stopped: Stopped = { forms: new Set(), paths: new Set(), passkeyPaths: new Set() };
  /** The routes of pages that have such an element. */
  const routesWith = { '[type=datetime-local]': new Set<string>(), '.auto-refresh[hx-get]': new Set<string>() };
  let current = 0;
  let reloaded = 0;
  for (const { route, picture: name, path, steps, signedOut } of pages) {
    const visit = signedOut ? await openVisit(t.origin, { reducedMotion: 'reduce' }) : hers;
    const { page } = visit;
    await page.setViewportSize(screens.wide);
    await page.emulateMedia({ colorScheme: 'light' });
    // All pages together take minutes, and none may ask for the second factor again.
    await t.owner.pool.query(`update console_session set second_factor_at = now() where state = 'full'`);
    await page.goto(await path(t, ada));
    await ready(page);
    await steps?.(page, t, ada);
    await ready(page);
    await noteRoute(page, route, routesWith);
    current += await page.locator('nav a[aria-current]').count();
    const isSecret = (await page.locator('.shown-once').count()) > 0;

    const wrong = await judgeLooks(page, (look) => judgeLook(page, name, look));
    wrong.push(...(await stopEveryForm(page, stopped)));
    // Last, because a menu closes when the focus leaves it.
    wrong.push(...(await judgeLooks(page, ({ colorScheme }) => listFaintRings(page, colorScheme))));
    if (isSecret) {
      reloaded += 1;
      if (!(await saysHowToReplace(page))) wrong.push('a reload does not say how to replace the secret');
    }
    if (wrong.length > 0) found[name] = wrong;
    expectQuiet(visit);
    if (visit !== hers) await visit.context.close();
  }
  expect(found).toEqual({});
  expect(reloaded).toBe(6);
  expect(current).toBeGreaterThan(pages.length / 2);
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
});
