/** The contrast of the focus ring, measured on pictures (WCAG 2.2, 1.4.11 and 2.4.13). */
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { closeBrowser, openVisit, ready } from './browser.ts';
import { contrast } from './contrast.ts';
import { pages } from './pages/all.ts';
import { setupConsole } from './setup.ts';
import { insertWebhook } from './webhook-stories.ts';

afterAll(closeBrowser);

/** Minimum contrast of a part of the interface against its surroundings. */
const leastRatio = 3;

/**
 * Pages on which the ring is measured beside the first three: menus, danger, tabs, lists, errors,
 * no session.
 */
const pictured = [
  'account-menu',
  'webhook-delete',
  'deliveries',
  'deliveries-none',
  'clients',
  'sign-in-rejected',
  'enrol-choice',
  'nothing-here',
];

it('the focus ring has a contrast of 3:1 or more against every surface, light and dark', {
  timeout: 400_000,
}, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  await t.owner.pool.query('update receiver set failing_since = now() where webhook_id = $1', [webhook.id]);
  const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken, reducedMotion: 'reduce' });
  const decoder = (await page.context().browser()?.newPage()) as Page;
  const faint: unknown[] = [];
  let measured = 0;

  async function measure(shown: Page, name: string): Promise<void> {
    for (const colorScheme of ['light', 'dark'] as const) {
      await shown.emulateMedia({ colorScheme });
      await shown.evaluate('document.activeElement.blur()');
      for (const control of await distinctControls(shown)) {
        const ratio = await ringRatio(shown, control, decoder);
        measured += 1;
        if (ratio < leastRatio) faint.push([colorScheme, name, await readMarkup(shown, control), ratio]);
      }
    }
  }

  for (const path of [`/o/${ada.orgId}`, `/o/${ada.orgId}/keys/new`, `/o/${ada.orgId}/webhooks/${webhook.id}`]) {
    await page.goto(path);
    await ready(page);
    await measure(page, path);
  }
  const judged = pages.filter(({ picture }) => pictured.includes(picture));
  expect(judged).toHaveLength(pictured.length);
  for (const { picture, path, steps, signedOut } of judged) {
    const { page: shown } = signedOut ? await openVisit(t.origin, { reducedMotion: 'reduce' }) : { page };
    await shown.goto(await path(t, ada));
    await ready(shown);
    await steps?.(shown, t, ada);
    await ready(shown);
    await measure(shown, picture);
  }
  await page.goto(`/o/${ada.orgId}/keys/new`);
  await ready(page);
  await page.getByLabel('Name').fill('Monthly report');
  await page.getByRole('checkbox', { name: 'org.read' }).check();
  t.pass(6 * 60_000);
  await page.getByRole('button', { name: 'Create API key' }).click();
  await page.getByRole('dialog', { name: 'Confirm your identity' }).waitFor();
  await measure(page, 'the dialog of the second factor');
  expect(faint).toEqual([]);
  expect(measured).toBeGreaterThan(150);
});

/** Marks one control of each kind and surface of the page, and returns their selectors. */
const distinctControls = (page: Page) =>
  page.evaluate<string[]>(`(() => {
    const seen = new Map();
    // Controls behind a dialog cannot get the focus, and a menu closes when the focus leaves it.
    const shown = document.querySelector('dialog[open], details.menu[open]') ?? document;
    for (const element of shown.querySelectorAll('a, button, input:not([type=hidden]), summary, select')) {
      if (!element.checkVisibility() || element.closest('.skip')) continue;
      const kind = [element.tagName, element.type, element.className, element.getAttribute('aria-current'),
        element.parentElement.closest('[class]')?.className].join('|');
      if (!seen.has(kind)) seen.set(kind, element);
    }
    return [...seen.values()].map((element, index) => {
      element.dataset.measured = String(index);
      return '[data-measured="' + index + '"]';
    });
  })()`);

const readMarkup = (page: Page, selector: string) =>
  page.evaluate<string>(`document.querySelector('${selector}').outerHTML.slice(0, 200)`);

/**
 * Compares pictures of a control with and without focus. Returns the contrast that most of the
 * changed pixels reach against their color before.
 */
async function ringRatio(page: Page, selector: string, decoder: Page): Promise<number> {
  const control = page.locator(selector);
  await control.scrollIntoViewIfNeeded();
  const box = await control.boundingBox();
  if (box === null) throw new Error(`${selector} has no box`);
  const clip = {
    x: Math.max(0, box.x - 6),
    y: Math.max(0, box.y - 6),
    width: box.width + 12,
    height: box.height + 12,
  };
  const picture = () => page.screenshot({ clip, animations: 'disabled', caret: 'hide' });
  const before = await picture();
  // After a key press, the focus counts as keyboard focus.
  await page.keyboard.press('Shift');
  await page.evaluate(`document.querySelector('${selector}').focus({ focusVisible: true })`);
  const after = await picture();
  await page.evaluate('document.activeElement.blur()');
  const changes = await changedColors(decoder, before, after);
  const ratios = changes.flatMap(([was, is, pixels]) => Array(pixels).fill(contrast(was, is)) as number[]);
  // Up to a quarter of a ring's pixels, those at its corners, are blended with the background; of
  // the round ring of a radio button up to half.
  const mixed = (await control.getAttribute('type')) === 'radio' ? 0.5 : 0.25;
  ratios.sort((a, b) => a - b);
  return ratios.length < 50 ? 1 : (ratios[Math.floor(ratios.length * mixed)] ?? 1);
}

type Color = [red: number, green: number, blue: number];

/**
 * Returns the colors of pixels that differ between two PNGs of one size, each pair with its number of
 * pixels. The browser of `decoder` reads the PNGs.
 */
const changedColors = (decoder: Page, before: Buffer, after: Buffer) =>
  decoder.evaluate<[was: Color, is: Color, pixels: number][]>(`(async () => {
    const read = async (png) => {
      const image = await createImageBitmap(await (await fetch('data:image/png;base64,' + png)).blob());
      const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
      context.drawImage(image, 0, 0);
      return context.getImageData(0, 0, image.width, image.height).data;
    };
    const [was, is] = [await read('${before.toString('base64')}'), await read('${after.toString('base64')}')];
    const changes = new Map();
    for (let at = 0; at < was.length; at += 4) {
      if (was[at] === is[at] && was[at + 1] === is[at + 1] && was[at + 2] === is[at + 2]) continue;
      const pair = [[...was.subarray(at, at + 3)], [...is.subarray(at, at + 3)]];
      changes.set(pair.join(), [...pair, (changes.get(pair.join())?.[2] ?? 0) + 1]);
    }
    return [...changes.values()];
  })()`);
