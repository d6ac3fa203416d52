/** The dialog that asks for the second factor above the form that needs it. */
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { routes } from '../../apps/console/routes.ts';
import { addPasskey, closeBrowser, expectQuiet, openVisit, ready, violations } from './browser.ts';
import { addProvider } from './pages/provider.ts';
import { goodPassword, setupConsole } from './setup.ts';

const timeout = 120_000;
const minuteMs = 60_000;
afterAll(closeBrowser);

const getDialog = (page: Page) => page.getByRole('dialog', { name: 'Confirm your identity' });

/**
 * Whether the focus is in the dialog. A browser's own controls count as outside the page, not as
 * the form.
 */
const focusIsInDialog = (page: Page) =>
  page.evaluate<boolean>(`document.activeElement === document.body || !!document.activeElement.closest('dialog')`);

const focusedName = (page: Page) =>
  page.evaluate<string>(`document.activeElement.labels?.[0]?.textContent ?? document.activeElement.textContent.trim()`);

/** Opens a member's page to edit, with input, whose second factor is older than 5 minutes. */
async function setupEdit() {
  const t = await setupConsole();
  const ada = await t.enrol();
  const bo = await t.make.member({ orgId: ada.orgId, name: 'Bo Lindqvist', roleKey: 'member' });
  const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  const { page } = visit;
  await page.goto(`/o/${ada.orgId}/members/person/${bo.userId}/change`);
  await ready(page);
  await page.getByLabel('Name').fill('Bo Typed');
  t.pass(6 * minuteMs);
  const readName = async () => {
    const { rows } = await t.owner.pool.query('select name from membership where person_id = $1', [bo.userId]);
    return rows[0].name as string;
  };
  return { t, ada, visit, page, readName };
}

it('asks in a dialog above the form, by keyboard: keeps the focus, clears a wrong code, then submits', {
  timeout,
}, async () => {
  const { t, ada, visit, page, readName } = await setupEdit();
  const { keyboard } = page;
  await page.getByRole('button', { name: 'Save changes' }).focus();
  await keyboard.press('Enter');
  await getDialog(page).waitFor();
  expect(await page.getByLabel('Name').inputValue()).toBe('Bo Typed');
  expect(await focusedName(page)).toBe('Authenticator code');
  expect(await violations(page)).toEqual([]);
  for (let stops = 0; stops < 12; stops += 1) {
    await keyboard.press('Tab');
    expect(await focusIsInDialog(page)).toBe(true);
  }

  const code = getDialog(page).getByLabel('Authenticator code');
  await code.focus();
  await keyboard.type('000000');
  await keyboard.press('Enter');
  await getDialog(page).locator('small.problem').waitFor();
  expect([await code.inputValue(), await focusedName(page)]).toEqual(['', 'Authenticator code']);
  expect(await code.getAttribute('aria-invalid')).toBe('true');
  expect(await readName()).toBe('Bo Lindqvist');

  await keyboard.type(t.nextCode(ada));
  await keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Bo Typed', level: 1 }).waitFor();
  expect(await readName()).toBe('Bo Typed');
  expectQuiet(visit);
});

it('Escape and Cancel close the dialog, return the focus, and change nothing', { timeout }, async () => {
  const { t, ada, visit, page, readName } = await setupEdit();
  const save = page.getByRole('button', { name: 'Save changes' });
  for (const close of ['Escape', 'Cancel']) {
    await save.focus();
    await page.keyboard.press('Enter');
    await getDialog(page).waitFor();
    if (close === 'Escape') await page.keyboard.press('Escape');
    else await getDialog(page).getByRole('button', { name: 'Cancel' }).click();
    await getDialog(page).waitFor({ state: 'hidden' });
    expect([close, await focusedName(page), await page.getByLabel('Name').inputValue()]).toEqual([
      close,
      'Save changes',
      'Bo Typed',
    ]);
    expect(await readName()).toBe('Bo Lindqvist');
  }
  // The form works as before, with the code that is entered now.
  await save.click();
  await getDialog(page).getByLabel('Authenticator code').fill(t.nextCode(ada));
  await getDialog(page).getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('heading', { name: 'Bo Typed', level: 1 }).waitFor();
  expectQuiet(visit);
});

it('accepts a passkey in the dialog, and keeps typed passwords in their form', { timeout }, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  const { page } = visit;
  await addPasskey(visit);

  await page.goto('/account/password');
  await ready(page);
  await page.getByLabel('Current password').fill(goodPassword);
  await page.getByLabel('New password').fill('quiet-lantern-otter-ballad');
  t.pass(6 * minuteMs);
  await page.getByRole('button', { name: 'Change password' }).click();
  await getDialog(page).getByRole('button', { name: 'Use a passkey' }).click();
  await page.getByText('Password changed').waitFor();
  expectQuiet(visit);
});

it('without a script a page asks, and cancelling it renders the form with its input', { timeout }, async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const bo = await t.make.member({ orgId: ada.orgId, name: 'Bo Lindqvist', roleKey: 'member' });
  const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken, script: false });
  await page.goto(`/o/${ada.orgId}/members/person/${bo.userId}/change`);
  await page.getByLabel('Name').fill('Bo Typed');
  t.pass(6 * minuteMs);
  await page.getByRole('button', { name: 'Save changes' }).click();
  await page.getByRole('heading', { name: 'Confirm your identity', level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  expect(await page.getByLabel('Name').inputValue()).toBe('Bo Typed');
});

/** What the pages that ask first show after the answer, and what is typed there. Values by label. */
const askFirst: Record<string, { shown: Record<string, string>; typed: Record<string, string> }> = {
  showPassword: {
    shown: { 'Current password': '', 'New password': '' },
    typed: { 'Current password': goodPassword, 'New password': 'quiet-lantern-otter-ballad' },
  },
  showProviderForm: {
    shown: {
      'Issuer URL': 'https://login.harbor-family-law.example.com/tenant',
      'Client ID': 'org-console',
      'Client secret': '',
    },
    typed: { 'Client ID': 'typed-client', 'Client secret': 'typed-secret' },
  },
  showWebhookHeaders: { shown: { Name: '', Value: '' }, typed: { Name: 'X-Tenant', Value: 'typed-value' } },
};

const waysToAsk = [true, false].flatMap((script) => Object.keys(askFirst).map((name) => ({ name, script })));

it('every page that asks before it opens is in this test', () => {
  const asking = routes.filter(({ method, stepUp }) => method === 'GET' && stepUp).map(({ name }) => name);
  expect(asking.sort()).toEqual(Object.keys(askFirst).sort());
});

it.each(waysToAsk)(
  '$name opens filled in after the second factor, and keeps what is typed when asked again (script: $script)',
  {
    timeout,
  },
  async ({ name, script }) => {
    const t = await setupConsole();
    const ada = await t.enrol();
    await addProvider(t, ada);
    const { id } = await t.make.webhook({ orgId: ada.orgId });
    const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken, script });
    const { page } = visit;
    const { shown = {}, typed = {} } = askFirst[name] ?? {};
    const route = routes.find((each) => each.name === name)?.path ?? '';
    const path = route.replace(':orgId', ada.orgId).replace(':webhookId', id);
    const submit = page.locator(`form[action="${path}"] [type=submit]`);
    const problems = page.locator('.problem, [aria-invalid="true"], .notice.bad');
    const enterCode = async (within: Pick<Page, 'getByLabel' | 'getByRole'> = page) => {
      await within.getByLabel('Authenticator code').fill(t.nextCode(ada));
      await within.getByRole('button', { name: 'Continue' }).click();
    };
    const read = async (labels: object) =>
      Object.fromEntries(
        await Promise.all(
          Object.keys(labels).map(async (label) => [label, await page.getByLabel(label, { exact: true }).inputValue()]),
        ),
      );

    t.pass(6 * minuteMs);
    await page.goto(path);
    await page.getByRole('heading', { name: 'Confirm your identity', level: 1 }).waitFor();
    await enterCode();
    await page.locator('main input:not([type=hidden])').last().waitFor();
    await page.getByText('The form comes next').waitFor({ state: 'detached' });
    expect([await read(shown), await problems.count()]).toEqual([shown, 0]);

    for (const [label, value] of Object.entries(typed)) await page.getByLabel(label, { exact: true }).fill(value);
    t.pass(6 * minuteMs);
    await submit.click();
    if (script) {
      await getDialog(page).waitFor();
      await getDialog(page).getByRole('button', { name: 'Cancel' }).click();
      await getDialog(page).waitFor({ state: 'hidden' });
      expect(await read(typed)).toEqual(typed);
    } else {
      // No page contains a secret, so that the form comes again with the rest.
      await enterCode();
      await page.getByText('The form comes next').waitFor({ state: 'detached' });
      const secrets = ['Client secret', 'Value', 'Current password', 'New password'];
      const kept = Object.entries(typed).map(([label, value]) => [label, secrets.includes(label) ? '' : value]);
      expect([await read(typed), await problems.count()]).toEqual([Object.fromEntries(kept), 0]);
    }
    expectQuiet(visit);
  },
);
