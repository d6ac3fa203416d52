import { expect } from 'vitest';
import { type BrowserVisit, expectQuiet, openVisit, picture, ready, type screens, violations } from '../browser.ts';
import { type ConsoleInstallation, type Enrolled, setupConsole } from '../setup.ts';
import { pages } from './all.ts';
import type { JudgedPage } from './page.ts';

const schemes = ['light', 'dark'] as const;

/**
 * Opens every page on a screen and judges it in both color schemes: axe-core's violations, whether
 * it fits the screen, and the browser's errors. Saves a picture of each.
 * @returns the problems by picture's name; empty is the guarantee.
 */
export async function judgeEveryPage(screen: keyof typeof screens): Promise<Record<string, string[]>> {
  const t = await setupConsole();
  const ada = await t.enrol({ name: 'Ada Rivers' });
  const found: Record<string, string[]> = {};
  // Without motion, because links and buttons would otherwise fade into the other scheme's colors,
  // whose contrast halfway is not that of the page.
  const still = { screen, reducedMotion: 'reduce' } as const;
  const hers = await openVisit(t.origin, { ...still, sessionToken: ada.sessionToken });
  for (const judged of pages) {
    const visit = judged.signedOut ? await openVisit(t.origin, still) : hers;
    await visit.page.emulateMedia({ colorScheme: schemes[0] });
    // All pages together take minutes, and none may ask for the second factor again.
    await t.owner.pool.query(`update console_session set second_factor_at = now() where state = 'full'`);
    await open(visit, judged, t, ada);
    for (const colorScheme of schemes) {
      await visit.page.emulateMedia({ colorScheme });
      found[`${judged.picture}-${colorScheme}`] = await judge(visit, { colors: colorScheme !== schemes[0] });
      await picture(visit.page, `${judged.picture}-${screen}-${colorScheme}`);
    }
    expectQuiet(visit);
    if (visit !== hers) await visit.context.close();
  }
  expect(Object.keys(found)).toHaveLength(pages.length * schemes.length);
  return Object.fromEntries(Object.entries(found).filter(([, wrong]) => wrong.length > 0));
}

async function open({ page }: BrowserVisit, judged: JudgedPage, t: ConsoleInstallation, ada: Enrolled) {
  await page.goto(await judged.path(t, ada));
  await ready(page);
  await judged.steps?.(page, t, ada);
  await ready(page);
}

/** The schemes differ only in colors, so all other rules run once. */
async function judge({ page }: BrowserVisit, options: { colors: boolean }): Promise<string[]> {
  const wrong = await violations(page, options);
  // Content wider than the screen makes a phone's page move sideways; wide tables and codes scroll
  // separately.
  const posing = await page.locator('[role=button]:not(button)').count();
  if (posing > 0) wrong.push(`${posing} elements have the role of a button and are none`);
  const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
  return (overflow as number) > 0 ? [...wrong, `the page is ${overflow} px wider than the screen`] : wrong;
}
