/** Forms whose submit is stopped, as by Esc. */
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { routes } from '../../../apps/console/routes.ts';

/** Submits a form of the page twice, as a double click does. */
const submitTwice = (page: Page, index: number) =>
  page.evaluate(`{
    const form = document.querySelectorAll('form[method="post"]')[${index}];
    form.noValidate = true;
    for (const _ of 'ab') form.requestSubmit(form.querySelector('[type=submit]'));
  }`);

/** The forms that were stopped, by their text; the paths that they post to, and those of passkeys' forms. */
export interface Stopped {
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
export async function stopEveryForm(page: Page, stopped: Stopped): Promise<string[]> {
  // Behind a dialog is a page whose forms are tried without it.
  if ((await page.locator('dialog[open]').count()) > 0) return [];
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
        .poll(() => posts, { timeout: 30_000, interval: 5 })
        .toBeGreaterThanOrEqual(expected)
        .catch(() => wrong.push(`form ${index} did not post a time ${expected}`));
      await debug.send('Page.stopLoading');
      await page.locator('form[aria-busy]').waitFor({ state: 'detached' });
    }
    if (posts > 2) wrong.push(`form ${index} posted ${posts} times`);
  }
  await debug.detach();
  await page.unroute('**');
  return wrong;
}

/** Returns the names of the routes that one of the paths belongs to. */
export const listRoutes = (paths: ReadonlySet<string>) =>
  routes
    .filter(({ method }) => method === 'POST')
    .filter(({ path }) => [...paths].some((one) => new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`).test(one)))
    .map(({ name }) => name);
