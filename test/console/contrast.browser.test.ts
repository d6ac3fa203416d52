/** The contrast of the focus ring, measured on pictures (WCAG 2.2, 1.4.11 and 2.4.13). */
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { closeBrowser, openVisit, ready } from './browser.ts';
import { contrast } from './contrast.ts';
import { setupConsole } from './setup.ts';
import { decode } from './small-png.ts';
import { insertWebhook } from './webhook-stories.ts';

afterAll(closeBrowser);

/** The least ratio of a part of the interface against what is beside it. */
const leastRatio = 3;

it('the focus ring has a contrast of 3:1 or more against every surface, light and dark', {
  timeout: 240_000,
}, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  await t.owner.pool.query('update webhook set failing_since = now() where id = $1', [webhook.id]);
  const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken, reducedMotion: 'reduce' });
  const faint: unknown[] = [];
  let measured = 0;
  const paths = [`/o/${ada.orgId}`, `/o/${ada.orgId}/keys/new`, `/o/${ada.orgId}/webhooks/${webhook.id}`];
  for (const colorScheme of ['light', 'dark'] as const)
    for (const path of paths) {
      await page.emulateMedia({ colorScheme });
      await page.goto(path);
      await ready(page);
      await page.evaluate('document.activeElement.blur()');
      for (const name of await distinctControls(page)) {
        const ratio = await ringRatio(page, name);
        measured += 1;
        if (ratio < leastRatio) faint.push([colorScheme, path, await markupOf(page, name), ratio]);
      }
    }
  expect(faint).toEqual([]);
  expect(measured).toBeGreaterThan(40);
});

/** Marks one control of each kind and surface of the page, and returns selectors of them. */
const distinctControls = (page: Page) =>
  page.evaluate<string[]>(`(() => {
    const seen = new Map();
    for (const element of document.querySelectorAll('a, button, input:not([type=hidden]), summary, select')) {
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

const markupOf = (page: Page, selector: string) =>
  page.evaluate<string>(`document.querySelector('${selector}').outerHTML.slice(0, 200)`);

/**
 * Compares pictures of a control and of its focus. Returns the contrast of the ring against what was
 * there before: most of the pixels that changed have it at least.
 */
async function ringRatio(page: Page, selector: string): Promise<number> {
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
  const picture = async () => decode(await page.screenshot({ clip, animations: 'disabled', caret: 'hide' }));
  const before = await picture();
  // A key has been pressed, so the focus is one of the keyboard.
  await page.keyboard.press('Shift');
  await page.evaluate(`document.querySelector('${selector}').focus({ focusVisible: true })`);
  const after = await picture();
  await page.evaluate('document.activeElement.blur()');
  const ratios: number[] = [];
  for (let at = 0; at < before.pixels.length; at += 3) {
    const [was, is] = [before.pixels.subarray(at, at + 3), after.pixels.subarray(at, at + 3)];
    if (!was.equals(is)) ratios.push(contrast(was, is));
  }
  // Up to a quarter of a ring's pixels, those of its corners, are mixed with the ground; of the round
  // ring of a radio button up to half.
  const mixed = (await control.getAttribute('type')) === 'radio' ? 0.5 : 0.25;
  ratios.sort((a, b) => a - b);
  return ratios.length < 50 ? 1 : (ratios[Math.floor(ratios.length * mixed)] ?? 1);
}
