/** The console by keyboard, with a screen reader and with reduced motion. */
import type { Page } from 'playwright-core';
import { afterAll, describe, expect, it } from 'vitest';
import { closeBrowser, expectQuiet, fieldFocused, openVisit, ready } from './browser.ts';
import { autoRefreshRoutes, pages } from './pages/all.ts';
import { type ConsoleInstallation, goodPassword, setupConsole } from './setup.ts';
import { insertWebhook } from './webhook-stories.ts';

const timeout = 120_000;
afterAll(closeBrowser);

describe('with the keyboard alone', () => {
  it('a person signs in, creates a key, copies it and signs out, with visible focus', {
    timeout,
  }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const visit = await openVisit(t.origin);
    const { page, context } = visit;
    const { keyboard } = page;
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: t.origin });

    await page.goto('/sign-in');
    await fieldFocused(page);
    await keyboard.type(ada.email);
    await tabTo(page, 'Password');
    await keyboard.type(goodPassword);
    await keyboard.press('Enter');
    await at(page, 'Your second factor');
    await fieldFocused(page);
    await keyboard.type(t.nextCode(ada));
    await keyboard.press('Enter');
    await at(page, 'Overview');

    await keyboard.press('Tab');
    expect(await focused(page)).toBe('Skip to main content');
    expect(await coveredBySkipLink(page)).toBe(0);
    await keyboard.press('Enter');
    await tabTo(page, 'Create API key', 3); // the first after the navigation and the search
    await keyboard.press('Enter');
    await at(page, 'Create API key');
    await tabTo(page, 'Name');
    await keyboard.type('Monthly report');
    await tabTo(page, 'Read the roster of clients and the families with seats org.clients.read');
    await keyboard.press('Space');
    await tabTo(page, 'In 90 days');
    await keyboard.press('ArrowDown'); // never
    await keyboard.press('Enter');
    await at(page, 'API key created');
    await tabTo(page, 'Copy API key, to copy');
    await keyboard.press('Enter');
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(/^aln_us_\w+$/);
    await tabTo(page, 'I’ve saved it');
    await keyboard.press('Enter');
    await at(page, 'Monthly report');

    await tabTo(page, 'Harbor Family Law');
    await keyboard.press('Enter');
    await tabTo(page, 'Your account');
    await keyboard.press('Escape');
    expect(await focused(page)).toBe('Harbor Family Law'); // the menu closes, and the focus returns to its button
    await keyboard.press('Enter');
    await tabTo(page, 'Sign out');
    await keyboard.press('Tab'); // an open menu would cover the focused control
    expect(await page.locator('details.menu[open]').count()).toBe(0);
    await keyboard.press('Shift+Tab');
    expect(await focused(page)).toBe('Harbor Family Law');
    await keyboard.press('Enter');
    await tabTo(page, 'Sign out');
    await keyboard.press('Enter');
    await at(page, 'Sign in');
    expectQuiet(visit);
  });

  it('an owner adds a webhook, redelivers an event and invites a member, with visible focus', { timeout }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken });
    const { page } = visit;
    const { keyboard } = page;

    await page.goto(`/o/${ada.orgId}/webhooks`);
    await at(page, 'Webhooks');
    await tabTo(page, 'Add webhook');
    await keyboard.press('Enter');
    await at(page, 'Add webhook');
    await tabTo(page, 'Endpoint URL');
    await keyboard.type('https://hooks.example.com/events');
    await tabTo(page, 'client.started');
    await keyboard.press('Space');
    await keyboard.press('Enter');
    await at(page, 'Webhook added');
    await tabTo(page, 'View webhook');
    await keyboard.press('Enter');
    await page.getByRole('heading', { name: 'hooks.example.com', level: 1 }).waitFor();
    await ready(page);

    const webhook = await insertWebhook(t, ada);
    const eventId = await t.make.delivery({ webhook, state: 'exhausted', attempts: [{ status: 503 }] });
    await page.goto(`/o/${ada.orgId}/webhooks/${webhook.id}/deliveries/${eventId}`);
    await ready(page);
    await tabTo(page, 'Redeliver');
    await keyboard.press('Enter');
    await page.getByText('Redelivery requested').waitFor();

    await page.goto(`/o/${ada.orgId}/members`);
    await ready(page);
    await tabTo(page, 'Invite member');
    await keyboard.press('Enter');
    await at(page, 'Invite member');
    await tabTo(page, 'Email address');
    await keyboard.type('nina@example.org');
    await tabTo(page, 'Name');
    await keyboard.type('Nina Ortiz');
    await keyboard.press('Enter');
    await at(page, 'Invitation created');
    await tabTo(page, 'Copy Invitation link, to copy');
    expectQuiet(visit);
  });

  it('a rejected form focuses and announces its first problem', { timeout }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
    await page.goto(`/o/${ada.orgId}/keys/new`);
    await ready(page);
    await page.getByLabel('Name').fill('Monthly report');
    await page.getByRole('button', { name: 'Create API key' }).click();
    await page.getByText('at least one permission').waitFor();
    await ready(page);
    // No scope was chosen: the first scope has the focus, and the group has the error message.
    expect(await focused(page)).toBe('Read the organization org.read');
    const described = await page.getByRole('group', { name: 'Permissions' }).getAttribute('aria-describedby');
    expect(await page.locator(`[id="${described?.split(' ').at(-1)}"]`).textContent()).toContain(
      'at least one permission',
    );

    await page.goto('/account/password');
    await ready(page);
    await page.getByLabel('Current password').fill('not-the-old-password');
    await page.getByLabel('New password').fill('quiet-lantern-otter-ballad');
    await page.getByRole('button', { name: 'Change password' }).click();
    await page.getByText('The current password is incorrect.').waitFor();
    await ready(page);
    // The error is at its field, which has the focus and is empty.
    const old = page.getByLabel('Current password');
    expect(await focused(page)).toBe('Current password');
    expect([await old.inputValue(), await old.getAttribute('aria-describedby')]).toEqual([
      '',
      'field-oldPassword-problem',
    ]);
  });

  it('automatic changes are announced to screen readers', { timeout }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const webhook = await insertWebhook(t, ada);
    const attempt = { status: 503, cause: 'answered_unavailable' };
    const dueAt = new Date(Date.now() + 60_000);
    const eventId = await t.make.delivery({ webhook, dueAt, state: 'running', attempts: [attempt] });
    const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
    await page.goto(`/o/${ada.orgId}/webhooks/${webhook.id}/deliveries/${eventId}`);
    await ready(page);
    const said = page.locator('[role="status"][data-announcement]');
    expect(await said.textContent()).toBe('');
    await t.owner.pool.query(
      `update delivery set state = 'delivered', settled_at = now(), due_at = null where event_id = $1`,
      [eventId],
    );
    await expect.poll(() => said.textContent(), { timeout: 20_000 }).toBe('Delivered');
  });

  it('every control and link of a part that updates keeps the focus, on every page that has one', {
    timeout: 300_000,
  }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
    const lost: string[] = [];
    const walked = new Set<string>();
    for (const { route, picture, path } of pages.filter((one) => autoRefreshRoutes.includes(one.route))) {
      await page.goto(await path(t, ada));
      await ready(page);
      // Without a delivery that changes there is nothing to update.
      if ((await page.locator('.auto-refresh[hx-get]:not(:has(.empty-state))').count()) === 0) continue;
      const controls = await page.evaluate<string[]>(`${refreshingControls}.filter(isAtEdge).map(nameControl)`);
      for (const control of controls) {
        const now = await focusedAfterUpdate(t, page, ada.orgId, control);
        if (now !== control) lost.push(`${picture}: ${control}: the focus is on ${now}`);
      }
      if (controls.length > 0) walked.add(route);
    }
    expect(lost).toEqual([]);
    expect([...walked].sort()).toEqual(autoRefreshRoutes);
  });

  it('nothing is animated for people who prefer reduced motion', { timeout }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const { page } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
    await page.emulateMedia({ reducedMotion: 'reduce' });
    for (const path of ['/account', `/o/${ada.orgId}`, `/o/${ada.orgId}/keys/new`]) {
      await page.goto(path);
      await ready(page);
      const moving = await page.evaluate<string[]>(`[...document.querySelectorAll('*')].flatMap((element) => {
        return ['', '::before', '::after'].flatMap((part) => {
          const { transitionDuration, animationName } = getComputedStyle(element, part);
          const isInstant = transitionDuration.split(', ').every((seconds) => parseFloat(seconds) < 0.01);
          return isInstant && animationName === 'none' ? [] : [element.outerHTML.slice(0, 80) + part];
        });
      })`);
      expect(moving).toEqual([]);
    }
  });
});

const at = async (page: Page, heading: string) => {
  await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
  await ready(page);
};

/** Returns how many links and buttons the focused skip link overlaps. */
const coveredBySkipLink = (page: Page) =>
  page.evaluate<number>(`(() => {
    const skip = document.querySelector('.skip').getBoundingClientRect();
    if (skip.left < 0 || skip.width === 0) return -1;
    return [...document.querySelectorAll('a:not(.skip), button, summary, h1, .mark')].filter((element) => {
      const box = element.getBoundingClientRect();
      return element.checkVisibility() && box.left < skip.right && box.right > skip.left &&
        box.top < skip.bottom && box.bottom > skip.top;
    }).length;
  })()`);

/**
 * The visible controls of the refreshing part. `nameControl` names one by what it does and by its row, so that
 * another row's differs; `isAtEdge` chooses those of the first and last row, and outside of rows.
 */
const refreshingControls = `(globalThis.nameControl = (control) => {
    if (control.matches('.auto-refresh, body')) return control.matches('.auto-refresh') ? 'the part' : 'the page';
    const row = control.closest('tr, li')?.querySelector('a[id]')?.id ?? '';
    const text = control.ariaLabel ?? control.textContent;
    return [row, control.tagName, control.getAttribute('href'), control.id, text.replace(/\\s+/g, ' ')].join(' ');
  }, globalThis.isAtEdge = (control) => {
    const row = control.closest('tr, li');
    return row === null || row.previousElementSibling === null || row.nextElementSibling === null;
  }, [...document.querySelectorAll('.auto-refresh[hx-get] :is(a[href], button, input, select, summary, [tabindex])')]
  .filter((control) => control.checkVisibility()))`;

/** Adds a newest delivery to each webhook, which moves the rows of lists. Returns their events. */
async function insertNewer({ owner, make }: ConsoleInstallation, orgId: string): Promise<string[]> {
  const { rows } = await owner.pool.query<{ id: string }>(
    `select id from webhook where organization_id = $1 and state <> 'deleted'`,
    [orgId],
  );
  const insert = ({ id }: { id: string }) => make.delivery({ webhook: { id, orgId, secret: '' }, state: 'delivered' });
  return Promise.all(rows.map(insert));
}

/**
 * Focuses a control, and returns what has the focus after an update that adds newer rows: the same
 * also for the part whose last row, with the control, was moved off the list.
 */
async function focusedAfterUpdate(t: ConsoleInstallation, page: Page, orgId: string, control: string): Promise<string> {
  const named = JSON.stringify(control);
  await page.evaluate(`${refreshingControls}.find((one) => nameControl(one) === ${named}).focus()`);
  const newer = await insertNewer(t, orgId);
  await updatePart(t, page);
  const [isThere, now] = await page.evaluate<[boolean, string]>(
    `[${refreshingControls}.map(nameControl).includes(${named}), nameControl(document.activeElement)]`,
  );
  await t.owner.pool.query('delete from delivery where event_id = any($1)', [newer]);
  await updatePart(t, page);
  return !isThere && now === 'the part' ? control : now;
}

/** Changes what every refreshing part shows, lets the page's request itself, and resolves when it shows the change. */
async function updatePart({ owner }: ConsoleInstallation, page: Page): Promise<void> {
  await owner.pool.query(
    `update delivery set settled_at = settled_at + interval '1 second', due_at = due_at + interval '61 seconds'`,
  );
  await owner.pool.query('update redelivery set seen = seen + 1');
  const version = `document.querySelector('.auto-refresh').dataset.version`;
  const before = await page.evaluate<string>(version);
  await page.evaluate(`document.querySelector('.auto-refresh').dispatchEvent(new Event('refresh'))`);
  await expect.poll(() => page.evaluate<string>(version), { timeout: 20_000, interval: 20 }).not.toBe(before);
}

/** Returns the label, text or name of the focused element. */
const focused = (page: Page) =>
  page.evaluate<string>(`(() => {
    const element = document.activeElement;
    const label = element.labels?.[0]?.textContent ?? element.getAttribute('aria-label') ?? element.textContent;
    return label.replace(/\\s+/g, ' ').trim();
  })()`);

/**
 * Presses Tab until the element has the focus; every stop on the way must be visible. @throws when
 * it does not have the focus after 60.
 */
async function tabTo(page: Page, what: string, atMost = 60): Promise<void> {
  for (let stops = 1; stops <= atMost; stops += 1) {
    await page.keyboard.press('Tab');
    const isSeen = await page.evaluate<boolean>(`(() => {
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(document.activeElement);
      return (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0) || boxShadow !== 'none';
    })()`);
    const here = await focused(page);
    expect([here, isSeen]).toEqual([here, true]);
    if (here === what) return;
  }
  throw new Error(`Tab does not lead to “${what}”; the focus is on “${await focused(page)}”.`);
}
