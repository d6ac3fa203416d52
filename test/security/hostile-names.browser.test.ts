/**
 * Names that contain markup, or have the maximum length of an import, in a real browser on a phone.
 */
import { afterAll, expect, it } from 'vitest';
import { routes } from '../../apps/console/routes.ts';
import { closeBrowser, expectQuiet, openVisit } from '../console/browser.ts';
import { setupConsole } from '../console/setup.ts';
import { pathIn } from './console/requests.ts';
import { arrange } from './console/scene.ts';

afterAll(closeBrowser);

const pages = routes.filter(
  ({ method, access, name }) => method === 'GET' && access === 'member' && name !== 'downloadAuditLog',
);

it.each(
  Object.entries({
    markup: `"'><img src=x onerror="document.title='taken over'"><style>*{display:none}</style><!-- `,
    'of 10,000 letters': 'W'.repeat(10_000),
    'right to left, with overrides': '\u202E\u2066משפחת לוי\u2067',
  }),
)('no name that is %s runs code or makes a page wider than a phone', { timeout: 300_000 }, async (_kind, mark) => {
  const t = await setupConsole();
  const scene = await arrange(t, mark);
  const visit = await openVisit(t.origin, { sessionToken: scene.owner.sessionToken, screen: 'phone' });
  const tooWide: string[] = [];
  for (const route of pages) {
    await visit.page.goto(pathIn(route, scene));
    expect(await visit.page.title()).not.toBe('taken over');
    expect(await visit.page.getByRole('heading', { level: 1 }).isVisible()).toBe(true);
    const over = await visit.page.evaluate<number>(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    );
    if (over > 0) tooWide.push(`${route.name}: ${over} px`);
  }
  expect(tooWide).toEqual([]);
  expectQuiet(visit);
});
