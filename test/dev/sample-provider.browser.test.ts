/** The sample OpenID provider of `npm start`, as a developer tries it in a browser. */
import { expect, it, onTestFinished } from 'vitest';
import { openBrowser } from '#test/chromium.ts';
import { setupDevStack } from '#test/stack.ts';

it('signs a member in from the page that npm start prints, also after a restart', { timeout: 240_000 }, async () => {
  const dev = await setupDevStack();
  const browser = await openBrowser();
  onTestFinished(() => browser.close());
  const organizations = new Set<string>();
  let used: string | null = null;
  for (let start = 0; start < 2; start += 1) {
    const started = await dev.start();
    const [us] = dev.stack().regions;
    const { url = '', organizationId = '', shortName = '', account = '' } = us?.openIdProvider ?? {};
    expect(started.output.text).toContain(`  Provider   ${url}`);
    expect(started.output.text).toContain(`with the sample provider, short name ${shortName}:`);
    organizations.add(`${organizationId} ${shortName} ${account}`);

    const context = await browser.newContext();
    context.setDefaultTimeout(90_000); // a busy machine
    const guide = await context.newPage();
    await guide.goto(url);
    const page = await context.newPage();
    await page.goto((await guide.getByRole('link').getAttribute('href')) ?? '');
    await page.getByLabel('Short name of your organization').fill(shortName);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('link', { name: account }).click();
    // A code works once, and both starts may be within its half minute.
    const readCode = async () => {
      await guide.reload();
      return guide.locator('.code').textContent();
    };
    await expect.poll(readCode, { timeout: 60_000, interval: 1_000 }).not.toBe(used);
    used = await readCode();
    await page.getByLabel('Authenticator code').fill(used ?? '');
    await page.getByRole('button', { name: /Verify|Continue|Sign in/ }).click();
    await page.getByRole('link', { name: 'Audit log' }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/o/${organizationId}`);
    await context.close();
    expect(await started.stop('SIGINT')).toBe(0);
  }
  expect(organizations.size).toBe(1);
});
