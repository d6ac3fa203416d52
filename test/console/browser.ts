import { mkdirSync } from 'node:fs';
import path from 'node:path';
import axe from 'axe-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { openBrowser } from '#test/chromium.ts';
import { cookieName } from '../../apps/console/middleware/cookies.ts';

/** The folder for screenshots: `PICTURES`, or a folder that git ignores. */
const pictures = path.resolve(process.env.PICTURES || 'test-artifacts/console');

export const screens = {
  wide: { width: 1200, height: 850 },
  phone: { width: 390, height: 844 },
  /** The width at which WCAG 2.2 (1.4.10, Reflow) allows no sideways scrolling. */
  narrow: { width: 320, height: 640 },
} as const;

let browser: Promise<Browser> | undefined;

/** The browser of a test file. Call `closeBrowser` in `afterAll`. */
const sharedBrowser = () => {
  browser ??= openBrowser();
  return browser;
};

export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = undefined;
}

/**
 * A visit with a real browser, with its error messages (including violations of the content
 * security policy) and its requests to other origins.
 */
export interface BrowserVisit {
  context: BrowserContext;
  page: Page;
  complaints: string[];
  strangers: string[];
}

/**
 * Opens a new browser profile, signed in when a session's token is given. It closes when the test
 * ends.
 */
export async function openVisit(
  origin: string,
  options: {
    sessionToken?: string;
    screen?: keyof typeof screens;
    scheme?: 'light' | 'dark';
    reducedMotion?: 'reduce' | 'no-preference';
    script?: boolean;
    zone?: string;
  } = {},
): Promise<BrowserVisit> {
  const { sessionToken, screen = 'wide', scheme = 'light', reducedMotion = 'no-preference', script = true } = options;
  const { zone = 'America/New_York' } = options;
  const context = await (await sharedBrowser()).newContext({
    viewport: screens[screen],
    colorScheme: scheme,
    reducedMotion,
    baseURL: origin,
    locale: 'en-US',
    timezoneId: zone,
    hasTouch: screen !== 'wide',
    isMobile: screen !== 'wide',
    deviceScaleFactor: 1,
    javaScriptEnabled: script,
  });
  onTestFinished(() => context.close());
  if (sessionToken !== undefined) {
    const { hostname: domain } = new URL(origin);
    const flags = { path: '/', secure: true, httpOnly: true, sameSite: 'Lax' as const };
    await context.addCookies([{ name: cookieName('session', origin), value: sessionToken, domain, ...flags }]);
  }
  const page = await context.newPage();
  const complaints: string[] = [];
  const strangers: string[] = [];
  page.on('console', (message) => {
    // A page that is rejected on purpose is no error here; the test checks its status.
    const isStatus = /the server responded with a status of 4\d\d/.test(message.text());
    if ((message.type() === 'error' && !isStatus) || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith('data:')) strangers.push(url);
  });
  return { context, page, complaints, strangers };
}

/** Resolves when the page's script has run. */
export const ready = (page: Page) => page.waitForSelector('body[data-ready]', { timeout: 20_000 });

/**
 * Resolves when a field has the initial focus. A browser sets it with its first frame of the page,
 * and input before that is lost.
 */
export const fieldFocused = (page: Page) => page.locator('input:focus').waitFor({ timeout: 20_000 });

/** Gives the page an authenticator that verifies its user (CDP), as a phone or a laptop has. */
export async function addAuthenticator({ context, page }: BrowserVisit): Promise<void> {
  const session = await context.newCDPSession(page);
  await session.send('WebAuthn.enable');
  await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
}

/** The rules of axe-core about colors that are switched on. */
const colorRules = { type: 'rule', values: ['color-contrast', 'link-in-text-block'] };

/**
 * Returns axe-core's violations on the current page, each with its elements. `colors` runs only the
 * rules about colors.
 */
export async function violations(page: Page, { colors = false } = {}): Promise<string[]> {
  // Evaluated over the debugger, because the page's policy permits no other script.
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe.source);
  const found = (await page.evaluate(
    `axe.run(document, { resultTypes: ["violations"], ${colors ? `runOnly: ${JSON.stringify(colorRules)}` : ''} })`,
  )) as axe.AxeResults;
  return found.violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html }) => `${id}: ${help}: ${html.slice(0, 200)}`),
  );
}

/** Returns the file in which `picture` saves. */
export const pictureFile = (name: string) => path.join(pictures, `${name}.png`);

/**
 * Saves a picture of the page (the whole page by default) as an artifact of the run, and returns
 * it.
 */
export async function picture(page: Page, name: string, { fullPage = true } = {}): Promise<Buffer> {
  mkdirSync(pictures, { recursive: true });
  return page.screenshot({ path: pictureFile(name), fullPage, animations: 'disabled', caret: 'hide' });
}

/** Asserts that the browser reported no error and sent no request to another origin. */
export function expectQuiet({ complaints, strangers }: BrowserVisit): void {
  expect(complaints).toEqual([]);
  expect(strangers).toEqual([]);
}

/** Adds a passkey to the account, with an authenticator of the browser. */
export async function addPasskey(visit: BrowserVisit, name = 'Passkey'): Promise<void> {
  const { page } = visit;
  await addAuthenticator(visit);
  await page.goto('/account');
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByLabel('Name').fill(name);
  await ready(page);
  await page.getByRole('button', { name: 'Create passkey' }).click();
  await page.getByText(`“${name}” added.`).waitFor();
}
