/**
 * What an owner does who opens the console, finds a webhook that fails, and repairs it: by what the
 * pages say, with a real worker and receiver.
 */
import type { Page } from 'playwright-core';
import { afterAll, expect, inject, it } from 'vitest';
import { createWebhook } from '#domain/webhooks/create.ts';
import { startReceiver } from '#test/receiver.ts';
import { testAllowList, testSealingKeys } from '#test/secrets.ts';
import { startTestWorker, testNamespace } from '#test/worker.ts';
import { closeBrowser, expectQuiet, openVisit, picture, ready } from './browser.ts';
import { setupConsole } from './setup.ts';

const timeout = 240_000;
const patient = { timeout: 60_000 };
afterAll(closeBrowser);

/** A console whose owner has a webhook for `/hook`; the receiver accepts posts to `/hooks` only. */
async function setupRepair(status: number, schedule: string) {
  const t = await setupConsole({ TEMPORAL_ADDRESS: inject('temporalAddress'), TEMPORAL_NAMESPACE: testNamespace() });
  await startTestWorker(t.database, { DELIVERY_SCHEDULE: schedule });
  const receiver = await startReceiver();
  receiver.respond = (response, { path }) => void response.writeHead(path === '/hooks' ? 204 : status).end();
  const ada = await t.enrol({ name: 'Ada Rivers' });
  const professional = await t.make.member({ orgId: ada.orgId, name: 'Bo Lindqvist' });
  const webhook = await createWebhook(
    t.owner,
    {
      organizationId: ada.orgId,
      by: 'orgctl',
      url: `${receiver.url}/hook`,
      description: 'Case management',
      eventTypes: ['client.started'],
    },
    { allow: testAllowList, sealingKeys: testSealingKeys },
  );
  const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  await visit.page.setViewportSize({ width: 1440, height: 900 });
  return {
    ada,
    webhook,
    visit,
    page: visit.page,
    receiver,
    /** Creates an event in the organization: a client starts. */
    cause: () => t.make.grant({ professional }),
    accepted: () =>
      new Set(
        receiver.received
          .filter(({ path, body }) => path === '/hooks' && !body.includes('"test":true'))
          .map(({ headers }) => headers['webhook-id']),
      ).size,
  };
}

/** Opens the overview until it says that the webhook has a status, and follows the link beside it. */
async function followAttention(page: Page, orgId: string, status: 'Failing' | 'Suspended'): Promise<void> {
  const line = page.getByRole('region', { name: 'Needs attention' }).getByRole('listitem').filter({ hasText: status });
  await expect
    .poll(async () => {
      await page.goto(`/o/${orgId}`);
      return line.count();
    }, patient)
    .toBe(1);
  await ready(page);
  await picture(page, `repair-overview-${status.toLowerCase()}`);
  await line.getByRole('link', { name: 'See cause of Case management' }).click();
  await ready(page);
}

/** Corrects the URL of the webhook, with the link of the open page. */
async function correctUrl(page: Page, url: string): Promise<void> {
  await page.getByRole('link', { name: 'Edit webhook' }).click();
  await page.getByLabel('URL').fill(`${url}/hooks`);
  await page.getByRole('button', { name: 'Save changes' }).click();
  await page.getByText('Webhook updated. Waiting deliveries go to the new URL at their next attempt.').waitFor();
  await ready(page);
}

const delivered = (page: Page) =>
  page.getByRole('table', { name: 'Deliveries' }).getByText('Delivered', { exact: true });

it('of a failing webhook the overview leads to the cause; with the URL corrected, what waits and what failed is delivered', {
  timeout,
}, async () => {
  const r = await setupRepair(404, '500ms,15s');
  const { page } = r;
  await r.cause();
  await followAttention(page, r.ada.orgId, 'Failing');
  await page.getByText('The receiver has nothing at this path (404): correct the URL or the route.').waitFor();
  await page.getByText('Waiting deliveries then go out by themselves.').waitFor();
  await picture(page, 'repair-cause');
  // Its last attempt fails before the repair; a second event waits.
  await expect
    .poll(() => page.getByRole('table', { name: 'Deliveries' }).getByText('Failed', { exact: true }).count(), patient)
    .toBe(1);
  await r.cause();
  await expect
    .poll(
      () =>
        page
          .getByRole('table', { name: 'Deliveries' })
          .getByText(/Last attempt: 404. Next/)
          .count(),
      patient,
    )
    .toBe(1);
  await correctUrl(page, r.receiver.url);
  await picture(page, 'repair-saved');
  // The status, the sums and the list change together, without a reload.
  await expect.poll(() => delivered(page).count(), patient).toBe(1);
  await page.getByText('1 of 2 delivered, 1 failed').waitFor();
  await page.getByRole('link', { name: 'Redeliver failed events…' }).click();
  await page.getByRole('button', { name: 'Redeliver failed events…' }).click();
  await page.getByRole('button', { name: 'Redeliver 1 event' }).click();
  await page.getByText('Redelivery completed.').waitFor(patient);
  await page.getByRole('link', { name: 'Case management' }).first().click();
  await expect.poll(() => delivered(page).count(), patient).toBe(2);
  await picture(page, 'repair-delivered');
  expect(r.accepted()).toBe(2);
  await page.goto(`/o/${r.ada.orgId}`);
  await page.getByText('No problems found.').waitFor();
  expectQuiet(r.visit);
});

it('of a suspended webhook the overview leads to the cause; with the URL corrected, it resumes and sends what was held', {
  timeout,
}, async () => {
  const r = await setupRepair(410, '500ms,500ms');
  const { page } = r;
  await r.cause();
  await followAttention(page, r.ada.orgId, 'Suspended');
  await page.getByText('because the receiver answered 410 Gone').waitFor();
  await picture(page, 'repair-suspended');
  // A resume before the repair names the cause again, and where to repair it.
  await page.getByRole('link', { name: 'Resume webhook' }).click();
  await page.getByRole('button', { name: 'Resume webhook' }).click();
  await page.getByText('The receiver did not accept the test event').waitFor(patient);
  await page.getByText('The receiver wants no more events at this URL (410)').waitFor();
  await picture(page, 'repair-probe');
  await correctUrl(page, r.receiver.url);
  await picture(page, 'repair-suspended-saved');
  await r.cause();
  await page.getByRole('link', { name: 'Resume webhook' }).click();
  await picture(page, 'repair-resume');
  await page.getByRole('button', { name: 'Resume webhook' }).click();
  await page.getByText('The receiver accepted the test event. Webhook resumed.').waitFor(patient);
  await expect.poll(() => delivered(page).count(), patient).toBe(2);
  await page.getByText('2 of 2 delivered').waitFor();
  await picture(page, 'repair-resumed');
  expect(r.accepted()).toBe(2);
  expectQuiet(r.visit);
});
