/**
 * Webhooks in a real browser, with a real worker and receiver: added, tested, observed through a
 * failure and recovery, redelivered, rotated, paused and resumed.
 */
import type { Page } from 'playwright-core';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { verifyDelivery } from '#domain/webhooks/verification/verify.ts';
import { type Received, startReceiver } from '#test/receiver.ts';
import { startTestWorker, testNamespace } from '#test/worker.ts';
import { closeBrowser, expectQuiet, openVisit, picture, ready, type screens, violations } from './browser.ts';
import { setupConsole } from './setup.ts';
import { hostileResponse } from './webhook-stories.ts';

const timeout = 240_000;
const patient = { timeout: 60_000 };
afterAll(closeBrowser);

/**
 * A console with Temporal, a worker, a receiver that verifies with the secrets that it gets, and a
 * browser of an owner.
 */
async function setupJourney(screen: keyof typeof screens, schedule: string) {
  const t = await setupConsole({ TEMPORAL_ADDRESS: inject('temporalAddress'), TEMPORAL_NAMESPACE: testNamespace() });
  await startTestWorker(t.database, { DELIVERY_SCHEDULE: schedule });
  const receiver = await startReceiver();
  const secrets: string[] = [];
  const isOurs = ({ headers, body }: Received) =>
    secrets.length === 0 || verifyDelivery({ headers, body, secrets: secrets.slice(-1) }).ok;
  /** Accepts posts that verify, rejects all others. */
  const verify: typeof receiver.respond = (response, post) =>
    void response.writeHead(isOurs(post) ? 200 : 400).end('seen');
  const fail: typeof receiver.respond = (response) => void response.writeHead(503).end(hostileResponse);
  receiver.respond = verify;
  const ada = await t.enrol({ name: 'Ada Rivers' });
  const professional = await t.make.member({ orgId: ada.orgId, name: 'Bo Lindqvist' });
  const visit = await openVisit(t.origin, { sessionToken: ada.sessionToken, screen });
  return {
    t,
    ada,
    visit,
    page: visit.page,
    receiver,
    secrets,
    verify,
    fail,
    /** Creates an event in the organization: a client starts. */
    cause: () => t.make.grant({ professional }),
    /** Returns real deliveries, without tests and probes. */
    deliveries: () => receiver.received.filter(({ body }) => !body.includes('"test":true')),
  };
}

/** Fills in the form for a webhook, and returns the secret that is shown. */
async function insertWebhook(page: Page, orgId: string, url: string): Promise<{ id: string; secret: string }> {
  await page.goto(`/o/${orgId}/webhooks/new`);
  await page.getByLabel('URL').fill(url);
  for (const type of ['client.started', 'seat.given']) await page.getByRole('checkbox', { name: type }).check();
  await page.getByLabel('Description').fill('Case management');
  await page.getByRole('button', { name: 'Add webhook' }).click();
  const secret = await shownSecret(page);
  const href = await page.getByRole('link', { name: 'View webhook' }).getAttribute('href');
  return { id: href?.split('/').at(-1) ?? '', secret };
}

const shownSecret = async (page: Page): Promise<string> =>
  ((await page.locator('.shown-once code').textContent()) ?? '').trim();

/** A link styled as a button. */
const pressed = (page: Page, name: string) =>
  page.getByRole('main').locator('button, a.button').filter({ hasText: name }).first();

describe.each(inject('journeyScreens'))('on a %s screen', (screen) => {
  it('a webhook is added, tested and verified; an event is followed through a failure to its delivery, and is redelivered', {
    timeout,
  }, async () => {
    const j = await setupJourney(screen, '4s,4s,4s,4s');
    const { page, receiver } = j;
    const { id, secret } = await insertWebhook(page, j.ada.orgId, `${receiver.url}/hooks`);
    j.secrets.push(secret);

    await pressed(page, 'Send test event').click();
    await page.getByRole('radio', { name: 'seat.given' }).check();
    await pressed(page, 'Send test event').click();
    await page.getByRole('heading', { name: 'Test event delivered' }).waitFor(patient);
    expect(await violations(page)).toEqual([]);
    await picture(page, `journey-tested-${screen}`);
    expect(receiver.received.map(({ body }) => JSON.parse(body.toString()))).toMatchObject([
      { type: 'seat.given', test: true },
    ]);

    await pressed(page, 'Check signature verification').click();
    await pressed(page, 'Check signatures').click();
    await page.getByRole('heading', { name: 'Signatures verified' }).waitFor(patient);
    expect(await violations(page)).toEqual([]);
    await picture(page, `journey-verified-${screen}`);
    expect(receiver.received).toHaveLength(3);

    receiver.respond = j.fail;
    await page.goto(`/o/${j.ada.orgId}/webhooks/${id}`);
    await page.getByRole('link', { name: 'Signatures' }).click();
    await page.getByText('The receiver verifies signatures.').waitFor();
    await page.getByRole('link', { name: 'Health' }).click();
    await page.getByRole('table', { name: 'Test events' }).getByText('Delivered').waitFor();
    await j.cause();
    await expect.poll(() => j.deliveries().length, patient).toBe(1);
    await page.goto(`/o/${j.ada.orgId}/webhooks/${id}/deliveries`);
    await page.getByText(/Last attempt: 503. Next attempt/).waitFor(patient);
    await page.getByRole('link', { name: 'client.started' }).click();
    await page.getByRole('heading', { name: 'Attempt 2' }).waitFor(patient);
    await picture(page, `journey-failing-${screen}`);
    receiver.respond = j.verify;
    // The page updates without a reload.
    await page.locator('#delivery .badge', { hasText: 'delivered' }).waitFor(patient);
    await page.getByRole('button', { name: 'Redeliver' }).waitFor();
    expect(await violations(page)).toEqual([]);
    await picture(page, `journey-recovered-${screen}`);
    const attempts = j.deliveries().length;
    expect(attempts).toBeGreaterThan(2);

    // The page shows exactly what the receiver got.
    await page.getByRole('link', { name: 'View request and response of attempt 1', exact: true }).click();
    const [first] = j.deliveries();
    const shown = await page.getByRole('region', { name: 'Request headers' }).textContent();
    for (const name of ['Service-Signature', 'webhook-id', 'webhook-signature', 'webhook-attempt', 'webhook-sequence'])
      expect(shown).toContain(`${name}: ${first?.headers[name.toLowerCase()]}`);
    // The page formats it in lines; the button copies the bytes as sent.
    const [sent, copy] = [first?.body.toString() ?? '', page.getByRole('button', { name: 'Copy Request body' })];
    expect(await copy.getAttribute('data-copy')).toBe(sent);
    const rendered = (await page.getByRole('region', { name: 'Request body' }).textContent()) ?? '';
    expect([rendered.split('\n').length > 3, JSON.parse(rendered)]).toEqual([true, JSON.parse(sent)]);
    expect(await page.getByRole('region', { name: 'Response body' }).textContent()).toContain('<script>');
    expect(await page.title()).not.toContain('taken over');
    expect(await violations(page)).toEqual([]);
    await picture(page, `journey-attempt-${screen}`);

    await page.goBack();
    await ready(page);
    await page.getByRole('button', { name: 'Redeliver' }).click();
    await page.getByText('Redelivery requested').waitFor();
    await expect.poll(() => j.deliveries().length, patient).toBe(attempts + 1);
    const events = new Set(j.deliveries().map(({ headers }) => headers['webhook-id']));
    expect(events.size).toBe(1);
    await page.locator('#delivery .badge', { hasText: 'delivered' }).waitFor(patient);
    expectQuiet(j.visit);
  });

  it('after a rotation both secrets sign; a pause holds events, a resume probes first, and failed events are redelivered', {
    timeout,
  }, async () => {
    const j = await setupJourney(screen, '1h,1h,1h');
    const { page, receiver } = j;
    const { id, secret } = await insertWebhook(page, j.ada.orgId, `${receiver.url}/hooks`);
    const at = (rest: string) => `/o/${j.ada.orgId}/webhooks/${id}${rest}`;

    await page.goto(at('/rotate'));
    await page.getByLabel('Overlap').selectOption('168');
    await page.getByRole('button', { name: 'Rotate signing secret' }).click();
    const next = await shownSecret(page);
    await page.getByRole('rowheader', { name: 'replaced' }).waitFor();
    await j.cause();
    await expect.poll(() => j.deliveries().length, patient).toBe(1);
    const [first] = j.deliveries();
    const { headers, body } = first ?? { headers: {} as Received['headers'], body: Buffer.alloc(0) };
    for (const known of [secret, next]) {
      const checks = verifyDelivery({ headers, body, secrets: [known] }).checks;
      expect(checks.filter(({ ok }) => !ok)).toEqual([]);
    }
    expect(headers['webhook-signature']?.toString().split(' ')).toHaveLength(2);

    await page.goto(at(''));
    await pressed(page, 'Pause…').click();
    await page.getByRole('button', { name: 'Pause webhook' }).click();
    await page.getByText('Webhook paused').waitFor();
    await j.cause();
    await page.goto(at('/deliveries'));
    await page.getByText('Held until you resume the webhook').waitFor(patient);
    receiver.respond = j.fail;
    await page.goto(at('/resume'));
    await page.getByRole('button', { name: 'Resume webhook' }).click();
    await page.getByText('The receiver did not accept the test event').waitFor(patient);
    expect(await violations(page)).toEqual([]);
    await picture(page, `journey-probe-rejected-${screen}`);
    expect(j.deliveries()).toHaveLength(1);
    receiver.respond = j.verify;
    await page.getByRole('button', { name: 'Resume webhook' }).click();
    await page.getByText('The receiver accepted the test event').waitFor(patient);
    await expect.poll(() => j.deliveries().length, patient).toBe(2);

    // The next one fails and waits an hour; all failed deliveries are redelivered at once.
    receiver.respond = j.fail;
    await j.cause();
    await expect.poll(() => j.deliveries().length, patient).toBe(3);
    await page.goto(at('/deliveries?status=retrying'));
    await page.getByText(/Last attempt: 503. Next attempt in 1 h/).waitFor(patient);
    receiver.respond = j.verify;
    await page.goto(at('/redeliver'));
    await page.getByRole('button', { name: 'Redeliver failed events…' }).click();
    await page.getByRole('button', { name: 'Redeliver 1 event' }).click();
    await page.getByText('Redelivery completed.').waitFor(patient);
    await picture(page, `journey-redelivered-${screen}`);
    await expect.poll(() => j.deliveries().length, patient).toBe(4);
    await page.goto(at('/deliveries'));
    await expect.poll(() => page.locator('#deliveries .badge', { hasText: 'delivered' }).count(), patient).toBe(3);

    // Another fails; it is retried at once, and is exhausted.
    receiver.respond = j.fail;
    await j.cause();
    await page.goto(at('/deliveries'));
    await page.getByText(/Last attempt: 503. Next attempt in 1 h/).waitFor(patient);
    await page.getByRole('link', { name: 'client.started' }).first().click();
    await page.getByRole('button', { name: 'Retry now' }).click();
    await page.getByText('Retry requested.').waitFor();
    await page.getByRole('heading', { name: 'Attempt 2' }).waitFor(patient);
    await pressed(page, 'Cancel delivery…').click();
    await page.getByRole('button', { name: 'Cancel delivery' }).click();
    await page.locator('#delivery .badge', { hasText: 'cancelled' }).waitFor();
    expect(await violations(page)).toEqual([]);
    expectQuiet(j.visit);
  });
});
