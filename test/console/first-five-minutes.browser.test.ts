/** The first five minutes as README describes them, on the stack that `npm start` starts. */
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { setupDevStack } from '#test/stack.ts';
import { addAuthenticator, closeBrowser, expectQuiet, openVisit, ready, type screens } from './browser.ts';
import { chooseApp } from './choose-app.ts';
import { codeAt, goodPassword } from './setup.ts';

afterAll(closeBrowser);

type DevStack = Awaited<ReturnType<typeof setupDevStack>>;
type Region = ReturnType<DevStack['stack']>['regions'][number];

it('the link of npm start leads an owner to a first key, a first response and a first delivery, also again on a phone after a recovery link', {
  timeout: 400_000,
}, async () => {
  const dev = await setupDevStack();
  const { output } = await dev.start();
  const [us] = dev.stack().regions as [Region];
  const [{ id }] = us.organizations as [Region['organizations'][number]];
  const printed = output.text.match(/http:\/\/localhost:\d+\/enrol#[\w-]{43}/)?.[0] ?? '';
  expect(output.text).toContain('npm run -s tool -- listen --region us --trigger client.started');
  const email = await firstMinutes(dev, us, printed, 'wide');

  Object.assign(dev.env, { CONSOLE_URL: us.console });
  const invite = ['person', 'invite', '--region', 'us', '--org', id, '--email', email, '--json'];
  const { code, stdout, stderr } = await dev.command('apps/orgctl/main.ts', ...invite);
  expect(code, stderr).toBe(0);
  await firstMinutes(dev, us, (JSON.parse(stdout) as { url: string }).url, 'phone');
});

/** Follows README's steps in order. Returns the address that the person signs in with. */
async function firstMinutes(dev: DevStack, us: Region, link: string, screen: keyof typeof screens): Promise<string> {
  const visit = await openVisit(us.console, { screen });
  const { page } = visit;
  await page.goto(link);
  await page.getByLabel('Password').fill(goodPassword);
  await page.getByRole('button', { name: 'Continue' }).click();
  if (screen === 'wide') await confirmApp(page);
  else {
    await addAuthenticator(visit);
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await ready(page);
    await page.getByRole('button', { name: 'Create passkey' }).click();
  }
  await page.getByRole('heading', { name: 'You’re all set' }).waitFor();
  await page.getByRole('link', { name: 'I’ve saved them' }).click();

  await createKey(page, screen);
  await watchDelivery(page, dev, us, screen);
  await page.goto('/account');
  const email = await page.locator('dt:text-is("Email address") + dd').textContent();
  expectQuiet(visit);
  return email ?? '';
}

async function confirmApp(page: Page): Promise<void> {
  const secret = await chooseApp(page);
  await page.getByLabel('Authenticator code').fill(codeAt(secret, new Date()));
  await page.getByRole('button', { name: 'Verify code' }).click();
}

/** Creates a key; returns the `curl` line of its page, parsed as a shell does. */
async function createKey(page: Page, screen: string): Promise<void> {
  await page.getByRole('link', { name: 'API keys', exact: true }).click();
  await page.getByRole('link', { name: 'Create API key' }).first().click();
  await page.getByLabel('Name').fill(`Monthly report, ${screen}`);
  await page.getByLabel('org.read').check();
  await page.getByRole('button', { name: 'Create API key' }).click();
  await page.getByRole('heading', { name: 'API key created' }).waitFor();
  const line = (await page.getByRole('region', { name: 'curl command' }).textContent()) ?? '';
  const [, name = '', value = '', url = ''] = /^curl -H "([^:]+): ([^"]+)" (\S+)$/.exec(line) ?? [];
  const response = await fetch(url, { headers: { [name]: value } });
  expect(response.status).toBe(200);
  await page.getByRole('link', { name: 'I’ve saved it' }).click();
}

/**
 * Adds a webhook for the sample receiver, gives the receiver its secret, creates an event as
 * `npm start` describes, and follows its delivery.
 */
async function watchDelivery(page: Page, dev: DevStack, us: Region, screen: string): Promise<void> {
  await page.getByRole('link', { name: 'Webhooks', exact: true }).first().click();
  await page.getByRole('link', { name: 'Add webhook' }).first().click();
  await page.getByLabel('URL').fill(`${us.receiver}/hooks/${screen}`);
  await page.getByRole('checkbox', { name: 'client.started' }).check();
  await page.getByLabel('Description').fill(`First webhook, ${screen}`);
  await page.getByRole('button', { name: 'Add webhook' }).click();
  await page.getByRole('heading', { name: 'Webhook added' }).waitFor();
  const secret = /whsec_[\w+/]{32}/.exec((await page.getByRole('main').textContent()) ?? '')?.[0] ?? '';
  const response = await fetch(`${us.receiver}/secrets`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ [screen]: [secret] }),
  });
  expect(response.status).toBe(204);
  await page.getByRole('link', { name: 'View webhook' }).click();
  await page.getByRole('heading', { name: `First webhook, ${screen}` }).waitFor();

  const caused = await dev.command('apps/receiver/listen/main.ts', '--region', 'us', '--trigger', 'client.started');
  expect(caused).toMatchObject({ code: 0 });
  await page.getByRole('navigation', { name: 'Webhook' }).getByRole('link', { name: 'Deliveries' }).click();
  await expect
    .poll(
      async () => {
        await page.reload();
        return page.getByRole('table').getByText('delivered').count();
      },
      { timeout: 30_000 },
    )
    .toBe(1);
  await page.getByRole('rowheader').first().getByRole('link').click();
  await page.getByText('204').first().waitFor();
}
