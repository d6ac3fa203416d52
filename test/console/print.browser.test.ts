/** A receipt on paper. */
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { closeBrowser, expectQuiet, openVisit, ready } from './browser.ts';
import { endOne } from './pages/clients.ts';
import { setupConsole } from './setup.ts';

const timeout = 180_000;
afterAll(closeBrowser);

/** Sheets in inches, and the margins that browsers offer: their own, and none. */
const papers = { A4: [8.27, 11.7], Letter: [8.5, 11] } as const;
const margins = { usual: 0.4, none: 0 } as const;
const pixelsPerInch = 96;

const sheets = Object.entries(papers).flatMap(([paper, [short, long]]) =>
  Object.entries(margins).flatMap(([margin, inches]) =>
    [
      { turn: 'portrait', width: short, height: long },
      { turn: 'landscape', width: long, height: short },
    ].map((each) => ({ name: `${paper}, ${each.turn}, margins ${margin}`, ...each, inches })),
  ),
);

/** Returns the texts that overlap another one or leave the sheet, as the page is on paper. */
const listFaults = (page: Page) =>
  page.evaluate<string[]>(`{
    const sheet = document.documentElement.clientWidth;
    const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    const boxes = [];
    while (texts.nextNode()) {
      const node = texts.currentNode;
      if (node.data.trim() === '' || !node.parentElement.checkVisibility({ visibilityProperty: true })) continue;
      let clip = node.parentElement;
      while (clip !== null && getComputedStyle(clip).clipPath === 'none') clip = clip.parentElement;
      if (clip !== null) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const box of range.getClientRects()) boxes.push({ text: node.data.trim(), box });
    }
    const cut = [...document.querySelectorAll('main *')].filter((each) =>
      each.getBoundingClientRect().right > sheet + 1 && getComputedStyle(each).position !== 'absolute');
    const overlaps = boxes.flatMap(({ text, box }, index) => boxes.slice(index + 1).filter((other) =>
      box.left < other.box.right - 1 && other.box.left < box.right - 1
        && box.top < other.box.bottom - 3 && other.box.top < box.bottom - 3)
      .map((other) => text + ' over ' + other.text));
    [...overlaps, ...cut.map(({ outerHTML }) => 'cut: ' + outerHTML.slice(0, 120)),
      ...(document.documentElement.scrollWidth > sheet ? ['wider than the sheet'] : [])];
  }`);

/** Returns how many pages a PDF has: Chromium writes the object of each without compression. */
const countPages = (pdf: Buffer) => pdf.toString('latin1').match(/\/Type\s*\/Page\b/g)?.length ?? 0;

it('a receipt is one column on any paper: nothing overlaps or is cut, and no page is blank', { timeout }, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  const { page } = visit;
  await page.goto(`${await endOne(t, ada)}/receipt`);
  await ready(page);
  await page.emulateMedia({ media: 'print' });
  const found: Record<string, unknown> = {};
  const expected: Record<string, unknown> = {};
  for (const { name, width, height, inches } of sheets) {
    const [across, down] = [width, height].map((side) => Math.floor((side - 2 * inches) * pixelsPerInch));
    await page.setViewportSize({ width: across ?? 0, height: down ?? 0 });
    const columns = await page.evaluate(
      `[...document.querySelectorAll('dl.details')].map((list) => new Set([...list.children].map((row) => row.offsetLeft)).size)`,
    );
    const length = await page.evaluate<number>(`document.querySelector('main').getBoundingClientRect().height`);
    const margin = Object.fromEntries(['top', 'right', 'bottom', 'left'].map((side) => [side, `${inches}in`]));
    const pdf = await page.pdf({ width: `${width}in`, height: `${height}in`, margin });
    found[name] = { faults: await listFaults(page), columns, pages: countPages(pdf) };
    expected[name] = { faults: [], columns: [1, 1], pages: Math.ceil(length / (down ?? 1)) };
  }
  expect(found).toEqual(expected);
  expectQuiet(visit);
});
