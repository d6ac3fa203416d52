/** Every page, as people see it: light and dark, wide and on a phone. Source: issue of the console, point 7 and "how it will be judged". */
import { afterAll, describe, expect, it } from 'vitest';
import { routes } from '../../apps/console/routes.ts';
import {
  type BrowserVisit,
  closeBrowser,
  expectQuiet,
  openVisit,
  picture,
  ready,
  screens,
  violations,
} from './browser.ts';
import { pages as activity } from './pages/activity.ts';
import { pages as clients } from './pages/clients.ts';
import { pages as deliveries } from './pages/deliveries.ts';
import { pages as frame } from './pages/frame.ts';
import { pages as keys } from './pages/keys.ts';
import { pages as members } from './pages/members.ts';
import type { JudgedPage } from './pages/page.ts';
import { pages as webhooks } from './pages/webhooks.ts';
import { type ConsoleInstallation, type Enrolled, setupConsole } from './setup.ts';

const pages = [...frame, ...keys, ...webhooks, ...deliveries, ...members, ...clients, ...activity];
const looks = (Object.keys(screens) as (keyof typeof screens)[]).flatMap((screen) =>
  (['light', 'dark'] as const).map((scheme) => ({ screen, scheme })),
);
/** Routes that answer with a file. */
const files = new Set(['downloadActivity']);

afterAll(closeBrowser);

it('every page is among those that are looked at', () => {
  const seen = new Set(pages.map(({ route }) => route));
  const missed = routes.filter(({ method, name }) => method === 'GET' && !seen.has(name) && !files.has(name));
  expect(missed.map(({ name }) => name)).toEqual([]);
});

describe.each(looks)('in $scheme, on a $screen screen', ({ screen, scheme }) => {
  it('every page has no accessibility violation, fits the screen, and asks and complains of nothing', {
    timeout: 400_000,
  }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const found: Record<string, string[]> = {};
    for (const judged of pages) {
      const visit = await openVisit(t.origin, {
        ...{ screen, scheme },
        ...(judged.signedOut ? {} : { sessionToken: ada.sessionToken }),
      });
      found[judged.picture] = await judge(visit, judged, t, ada);
      await picture(visit.page, `${judged.picture}-${screen}-${scheme}`);
      expectQuiet(visit);
      await visit.context.close();
    }
    expect(found).toEqual(Object.fromEntries(pages.map((judged) => [judged.picture, []])));
  });
});

async function judge({ page }: BrowserVisit, judged: JudgedPage, t: ConsoleInstallation, ada: Enrolled) {
  await page.goto(await judged.path(t, ada));
  await ready(page);
  await judged.steps?.(page, t, ada);
  await ready(page);
  const wrong = await violations(page);
  // What is wider than the screen makes a phone's page wobble; wide tables and codes scroll by themselves.
  const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
  return (overflow as number) > 0 ? [...wrong, `the page is ${overflow} px wider than the screen`] : wrong;
}
