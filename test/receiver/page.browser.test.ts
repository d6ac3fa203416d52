/** The sample receiver's page in a browser. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { openBrowser } from '#test/chromium.ts';
import { setupReceiver } from './setup.ts';

it('the page says that a signing secret is missing, takes it, and fits a screen of 1,440 pixels', async () => {
  const { receiver, deliver, secret } = await setupReceiver();
  const endpoint = randomUUID();
  const id = randomUUID();
  expect((await deliver({ endpoint, id })).status).toBe(401);
  const browser = await openBrowser();
  try {
    const page = await browser.newPage({ viewport: { width: 1_440, height: 900 } });
    await page.goto(receiver.url);
    await page.getByText(`No signing secret is known for ${endpoint}.`).waitFor();
    await page.getByLabel('Endpoint').fill(endpoint);
    await page.getByLabel('Signing secret').fill(secret);
    await page.getByRole('button', { name: 'Add signing secret' }).click();
    await page.getByText('Added.').waitFor();
    expect((await deliver({ endpoint, id })).status).toBe(204);
    await page.getByRole('cell', { name: 'verified' }).waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(1_440);
    const cut = await page.locator('table').evaluate((table) => table.scrollWidth > table.clientWidth);
    expect(cut).toBe(false);
  } finally {
    await browser.close();
  }
});
