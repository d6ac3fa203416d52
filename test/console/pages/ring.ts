/** The contrast of the focus ring, measured on pictures (WCAG 2.2, 1.4.11 and 2.4.13). */
import type { Page } from 'playwright-core';
import { contrast } from '../contrast.ts';

/** Minimum contrast of a part of the interface against its surroundings. */
const leastRatio = 3;

/**
 * Returns a function that measures the focus ring of each control of a page, and lists the faint ones.
 * A kind of control is measured once on each ground and in each scheme, however many pages show it.
 * `decoder` reads the pictures.
 */
export function createRingMeter(decoder: Page) {
  const measured = new Set<string>();
  return async (page: Page, colorScheme: 'light' | 'dark'): Promise<string[]> => {
    await page.evaluate('document.activeElement.blur()');
    const controls = await distinctControls(page);
    const wrong = controls.length === 0 ? ['no control has a focus ring'] : [];
    for (const [kind, control] of controls) {
      if (measured.has(colorScheme + kind)) continue;
      measured.add(colorScheme + kind);
      const ratio = await ringRatio(page, control, decoder);
      if (ratio < leastRatio) wrong.push(`a ring of ${ratio}:1 (${colorScheme}): ${await readMarkup(page, control)}`);
    }
    return wrong;
  };
}

/** Marks one control of each kind and ground of the page. Returns their kinds and selectors. */
const distinctControls = (page: Page) =>
  page.evaluate<[kind: string, selector: string][]>(`(() => {
    for (const element of document.querySelectorAll('[data-measured]')) delete element.dataset.measured;
    const seen = new Map();
    // A ring lies on what is behind the control: the nearest element with a color of its own.
    const findGround = (element) => {
      for (let at = element.parentElement; at !== null; at = at.parentElement) {
        const { backgroundColor } = getComputedStyle(at);
        if (!backgroundColor.endsWith(', 0)')) return backgroundColor;
      }
    };
    // Controls behind a dialog cannot get the focus, and a menu closes when the focus leaves it.
    const shown = document.querySelector('dialog[open], details.menu[open]') ?? document;
    for (const element of shown.querySelectorAll('a, button, input:not([type=hidden]), summary, select')) {
      if (!element.checkVisibility() || element.closest('.skip')) continue;
      const kind = [element.tagName, element.type, element.className, element.getAttribute('aria-current'),
        element.parentElement.closest('[class]')?.className, findGround(element)].join('|');
      if (!seen.has(kind)) seen.set(kind, element);
    }
    return [...seen].map(([kind, element], index) => {
      element.dataset.measured = String(index);
      return [kind, '[data-measured="' + index + '"]'];
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
