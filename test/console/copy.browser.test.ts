/** The buttons that copy ids and URLs. */
import { afterAll, expect, it } from 'vitest';
import { closeBrowser, expectQuiet, openVisit, ready, violations } from './browser.ts';
import { setupConsole } from './setup.ts';
import { insertWebhook, makeDeliveries } from './webhook-stories.ts';

const timeout = 120_000;
afterAll(closeBrowser);

async function setup() {
  const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:1' });
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  const { delivered } = await makeDeliveries(t, webhook);
  return { ...t, ada, webhook, delivered, at: (rest: string) => `/o/${ada.orgId}${rest}` };
}

it('an id is copied by keyboard, twice, each time said to screen readers, and the focus stays', {
  timeout,
}, async () => {
  const t = await setup();
  const visit = await openVisit(t.origin, { sessionToken: t.ada.sessionToken });
  const { page, context } = visit;
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: t.origin });
  await page.goto(t.at(`/webhooks/${t.webhook.id}/deliveries/${t.delivered}`));
  await ready(page);
  const button = page.getByRole('button', { name: 'Copy event ID' });
  const said = page.locator('[data-announcement]');
  await button.focus();
  for (const words of ['Copied', 'Copied\u00A0']) {
    await page.keyboard.press('Enter');
    await expect.poll(() => said.textContent()).toBe(words);
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(t.delivered);
    expect(await button.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
  }
  expect(await violations(page)).toEqual([]);
  const size = await button.boundingBox();
  expect(Math.min(size?.width ?? 0, size?.height ?? 0)).toBeGreaterThanOrEqual(24);
  expectQuiet(visit);
});

it('every page that shows an id or a URL of an endpoint has a button that copies it', { timeout }, async () => {
  const t = await setup();
  const { page } = await openVisit(t.origin, { sessionToken: t.ada.sessionToken });
  const webhook = `/webhooks/${t.webhook.id}`;
  for (const [path, what, value] of [
    ['', 'organization ID', t.ada.orgId],
    ['/deliveries', 'event ID', t.delivered],
    [`${webhook}/deliveries`, 'event ID', t.delivered],
    [`${webhook}/deliveries/${t.delivered}`, 'event ID', t.delivered],
    ['/webhooks', 'endpoint URL', 'https://hooks.example.com/events'],
    [webhook, 'endpoint URL', 'https://hooks.example.com/events'],
    [`${webhook}?tab=settings`, 'webhook ID', t.webhook.id],
  ] as const) {
    await page.goto(t.at(path));
    await ready(page);
    const buttons = page.getByRole('button', { name: `Copy ${what}` });
    const copies = await buttons.evaluateAll((all) => all.map((button) => button.getAttribute('data-copy')));
    expect([path, copies.includes(value)]).toEqual([path, true]);
  }
});

it('without JavaScript there is no copy button, and the whole id is selected at once', { timeout }, async () => {
  const t = await setup();
  const { page } = await openVisit(t.origin, { sessionToken: t.ada.sessionToken, script: false });
  await page.goto(t.at(`/webhooks/${t.webhook.id}/deliveries/${t.delivered}`));
  expect(await page.getByRole('button', { name: 'Copy event ID' }).count()).toBe(0);
  const id = page.locator('.copy code', { hasText: t.delivered });
  await id.waitFor();
  const selection = await id.evaluate((element) => element.computedStyleMap().get('user-select')?.toString());
  expect(selection).toBe('all');
});
