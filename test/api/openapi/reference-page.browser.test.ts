import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openBrowser } from '#test/chromium.ts';
import { shareApi } from '#test/setup.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { violations } from '../../console/browser.ts';
import { giveGrants } from '../bounds/readers.ts';

const wide = { width: 1280, height: 850 };
const phone = { width: 390, height: 844 };

/** Code of which a part is out of its box. */
const cutCode =
  "[...document.querySelectorAll('pre')].filter((it) => it.scrollWidth > it.clientWidth).map((it) => it.innerText)";

/** A visit of the page, with the browser's messages and its requests to other origins. */
interface Visit {
  page: Page;
  complaints: string[];
  strangers: string[];
}

describe('the reference page at /docs', () => {
  const installation = shareApi();
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  }, 300_000);
  afterAll(() => browser?.close());

  async function visit(path: string, options: Parameters<Browser['newContext']>[0] = {}): Promise<Visit> {
    const origin = new URL(installation().api.url).origin;
    const context = await browser.newContext({ viewport: wide, reducedMotion: 'reduce', ...options });
    onTestFinished(() => context.close());
    const page = await context.newPage();
    const complaints: string[] = [];
    const strangers: string[] = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('request', (request) => {
      if (!request.url().startsWith(`${origin}/`)) strangers.push(request.url());
    });
    await page.goto(`${origin}${path}`);
    return { page, complaints, strangers };
  }

  /** Enters a key, and sends a read with it. */
  async function send(page: Page, { key, orgId }: { key: string; orgId: string }, operationId = 'getOrg') {
    await page.locator('#key-box').evaluate((box: { open: boolean }) => {
      box.open = true;
    });
    await page.getByLabel('API key', { exact: true }).fill(key);
    await page.getByLabel('Organization ID').fill(orgId);
    await page.keyboard.press('Enter');
    await page.locator(`#${operationId} .try button`).click();
    await page.locator(`#${operationId} output`, { hasText: 'Status 200' }).waitFor();
  }

  it.each([
    ['light', wide],
    ['light', phone],
    ['dark', wide],
    ['dark', phone],
  ] as const)(
    'has no accessibility violation, no scrolling sideways and nothing that its policy rejects: %s, %o',
    async (colorScheme, viewport) => {
      const { page, complaints, strangers } = await visit('/docs', { colorScheme, viewport });
      await send(page, await installation().make.apiKey());
      await page.locator('#search').fill('retry');
      await page.locator('#results mark').first().waitFor();
      for (const details of await page.locator('#key-box, .text details').all())
        await details.evaluate((one: { open: boolean }) => {
          one.open = true;
        });
      expect(await violations(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width);
      expect(await page.evaluate(cutCode)).toEqual([]);
      expect([complaints, strangers]).toEqual([[], []]);
    },
  );

  it('is complete without JavaScript, also the choice of a language', async () => {
    const { page, complaints } = await visit('/docs', { javaScriptEnabled: false, viewport: phone });
    expect(await page.locator('.sample.curl:visible').count()).toBe(endpoints.length);
    await page.getByRole('radio', { name: 'Go' }).check();
    expect(await page.locator('.sample.go:visible').count()).toBe(endpoints.length);
    expect(await page.locator('.sample:visible').count()).toBe(endpoints.length);
    expect(await page.locator('.sample.go').first().innerText()).toContain('func main()');
    for (const needsScript of ['#search', '#key-box', '.try button'])
      expect(await page.locator(needsScript).first().isVisible(), needsScript).toBe(false);
    expect(complaints).toEqual([]);
  });

  it('remembers the language, and nothing else', async () => {
    const { page } = await visit('/docs');
    await page.getByRole('radio', { name: 'Python' }).check();
    await page.reload();
    await page.locator('.sample.python').first().waitFor();
    expect(await page.locator('.sample.curl:visible').count()).toBe(0);
    expect(await page.evaluate('({ ...localStorage })')).toEqual({ language: 'python' });
  });

  it('finds words in any order, shows where they stand, and leads there with the keyboard', async () => {
    const { page, complaints } = await visit('/docs');
    await page.keyboard.press('/');
    await page.keyboard.type('retry wait 429');
    const results = page.locator('#results a');
    await results.first().waitFor();
    expect(await results.locator('mark').allInnerTexts()).toContain('429');
    expect(await results.allInnerTexts()).toContainEqual(expect.stringContaining('Limits'));
    await page.locator('#search').fill('referral earnings');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(/#getOrgReferralEarnings$/);
    expect(await results.first().isVisible()).toBe(false);
    await page.locator('#search').fill('<img src=x>');
    expect(await page.locator('#results').innerText()).toBe('Nothing found.');
    expect(complaints).toEqual([]);
  });

  it('copies a sample', async () => {
    const { page } = await visit('/docs', { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.locator('#getOrgSeats .curl .copy').click();
    await page.locator('#getOrgSeats .curl .copy', { hasText: 'Copied' }).waitFor();
    const copied = await page.evaluate('navigator.clipboard.readText()');
    expect(copied).toContain('/v1/orgs/$ORG_ID/seats"');
    expect(copied).toBe(await page.locator('#getOrgSeats .curl pre').textContent());
  });

  it('sends a read with a key that is kept in the memory of the page only', async () => {
    const { make } = installation();
    const { key, orgId } = await make.apiKey();
    const { page, complaints, strangers } = await visit('/docs#getOrg');
    await send(page, { key, orgId });
    const response = await page.locator('#getOrg .try pre').innerText();
    expect(response).toMatch(/^ETag: "[\w-]+"\nRateLimit: "key";r=119;t=\d+\n/);
    expect(response).toContain(`"id": "${orgId}"`);
    await page.locator('#search').fill(orgId);
    expect(await page.locator('#results').innerText()).toBe('Nothing found.');

    expect(await page.content()).not.toContain(key);
    // By number: a spread leaves out entries that are named like a method of the storage.
    const read = (storage: string) => `Array.from(${storage}, (_, n) => ${storage}.getItem(${storage}.key(n)))`;
    const stored = await page.evaluate(`[${read('localStorage')}, ${read('sessionStorage')}, document.cookie]`);
    expect(stored).toEqual([[], [], '']);
    expect(page.url()).not.toContain(key);
    // A page in the browser's memory comes back with its fields, and this browser keeps none there.
    await page.evaluate("dispatchEvent(new Event('pagehide'))");
    expect(await page.locator('#api-key').inputValue()).toBe('');
    expect(await page.locator('.try .box').count()).toBe(0);
    await page.goto(`${new URL(page.url()).origin}/llms.txt`);
    await page.goBack();
    expect(await page.locator('#api-key').inputValue()).toBe('');
    expect([complaints, strangers]).toEqual([[], []]);
  });

  it('shows the first 20,000 characters of a response', async () => {
    const { make, owner } = installation();
    const creator = await make.member();
    await giveGrants(owner, creator, 200);
    const { page } = await visit('/docs');
    await send(page, await make.apiKey({ creator }), 'getFirmRoster');
    const text = await page.locator('#getFirmRoster .try pre').innerText();
    expect(text).toMatch(/\n… and \d{4,} more characters$/);
    expect(text.split('\n\n')[1]?.indexOf('\n…')).toBe(20_000);
  });

  it.each([wide, phone])(
    'opens the key box where the reader is, sends on Enter, and closes it: %o',
    async (viewport) => {
      const { make } = installation();
      const { key, orgId } = await make.apiKey();
      const { page } = await visit('/docs', { viewport });
      const button = page.locator('#listRoles .try button').first();
      await button.scrollIntoViewIfNeeded();
      const position = await page.evaluate('scrollY');
      expect(position).toBeGreaterThan(2_000);
      await button.click();
      expect(await page.locator('#listRoles output').innerText()).toContain('Enter your key');
      await page.getByLabel('API key', { exact: true }).fill(key);
      await page.getByLabel('Organization ID').fill(orgId);
      expect(await page.evaluate('scrollY')).toBe(position);
      await page.keyboard.press('Enter');
      await page.locator('#listRoles output', { hasText: 'Status 200' }).waitFor();
      expect(await page.evaluate('scrollY')).toBe(position);
      expect(await page.getByLabel('API key', { exact: true }).isVisible()).toBe(false);
      expect(await page.evaluate("document.activeElement.closest('section')?.id")).toBe('listRoles');
      for (const close of [() => button.press('Enter'), () => page.keyboard.press('Escape')]) {
        await page.evaluate("document.querySelector('#key-box').open = true");
        await close();
        expect(await page.getByLabel('API key', { exact: true }).isVisible()).toBe(false);
      }
    },
  );

  it('shows an error response with its code', async () => {
    const { make } = installation();
    const { orgId } = await make.apiKey();
    const { page } = await visit('/docs');
    await page.locator('#key-box summary').click();
    await page.getByLabel('API key', { exact: true }).fill('aln_us_not_a_key');
    await page.getByLabel('Organization ID').fill(orgId);
    await page.keyboard.press('Enter');
    await page.locator('#listRoles .try button').click();
    await page.locator('#listRoles output', { hasText: 'Status 401' }).waitFor();
    expect(await page.locator('#listRoles .try pre').innerText()).toContain('"error": "invalid_api_key"');
  });

  it('lets no script make markup or code of text', async () => {
    const { page } = await visit('/docs');
    for (const attack of [
      "document.body.innerHTML = '<img src=x onerror=alert(1)>'",
      "document.createElement('script').text = 'alert(1)'",
      "trustedTypes.createPolicy('any', {})",
    ]) {
      const outcome = await page.evaluate(
        `(() => { try { ${attack}; return 'done'; } catch (error) { return error.name; } })()`,
      );
      expect(outcome, attack).toBe('TypeError');
    }
  });
});
