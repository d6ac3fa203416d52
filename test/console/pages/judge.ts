/** What must hold of a page as a browser shows it. */
import type { Page } from 'playwright-core';
import { causes } from '#domain/webhooks/causes.ts';

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
    const spaced = (text) => text.replace(/\\s/g, ' ');
    const isLocal = (time) => formats.some((format) =>
      spaced(time.textContent).startsWith(spaced(format.format(new Date(time.dateTime)))));
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

/** Returns the codes of causes that people see. */
const codesIn = async (page: Page) => {
  const text = await page.locator('body').innerText();
  return causes.filter((code) => code.includes('_') && text.includes(code));
};

/** Returns what is wrong with the page as it is shown, in colors or in none. */
export async function listWrong(page: Page): Promise<string[]> {
  const wrong = [...(await inOtherZones(page)), ...(await datesElsewhere(page)), ...(await codesIn(page))];
  // Content wider than the screen makes a phone's page move sideways; wide tables and codes scroll
  // separately.
  const wider = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
  if (wider !== 0) wrong.push(`the page is ${wider} px wider than the screen`);
  if (await page.evaluate('localStorage.length + sessionStorage.length > 0')) wrong.push('the page stores something');
  const posing = await page.locator('[role=button]:not(button)').count();
  if (posing > 0) wrong.push(`${posing} elements have the role of a button and are none`);
  return wrong;
}

/** Returns what is wrong with the page where colors are forced. */
export async function listWrongWithoutColors(page: Page): Promise<string[]> {
  await page.emulateMedia({ forcedColors: 'active' });
  const wrong = await unmarked(page);
  await page.emulateMedia({ forcedColors: 'none' });
  return wrong;
}

/** Reloads a page that shows a secret once. Returns whether it then says how to replace it. */
export async function saysHowToReplace(page: Page): Promise<boolean> {
  await page.reload();
  return (await page.locator('main').getByText('can’t be shown again').locator('xpath=following::a[1]').count()) > 0;
}
