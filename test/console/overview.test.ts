/** What the first page asks for first, and what becomes of test events and retries. */
import { expect, it } from 'vitest';
import { getOverview } from '#domain/db/statements/overview.ts';
import { redeliverOne } from '#domain/webhooks/redeliver.ts';
import { recordTestOutcome, requestSignatureCheck, requestTest } from '#domain/webhooks/test-event.ts';
import { writeLines } from '../domain/activity/lines.ts';
import { setupConsole } from './setup.ts';
import { insertWebhook } from './webhook-stories.ts';

const dayMs = 86_400_000;
const accepted = { eventType: 'client.started', delivered: true, status: 204, cause: 'accepted' };
const refused = { eventType: 'seat.given', delivered: false, status: null, cause: 'connection_refused' };

async function setup() {
  const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:9' });
  const ada = await t.enrol({ name: 'Ada Rivers' });
  const maker = { orgId: ada.orgId, userId: ada.personId, roleId: null };
  const visitor = t.http(ada);
  const request = (webhookId: string) => ({
    organizationId: ada.orgId,
    webhookId,
    by: { personId: ada.personId, address: '203.0.113.7' },
  });
  return { ...t, ada, maker, visitor, request, overview: async () => (await visitor.get(`/o/${ada.orgId}`)).text };
}

it('each step stays completed, also when the key is revoked or long unused, or the webhook is deleted', async () => {
  const t = await setup();
  expect(await t.overview()).toContain('Get started');
  const key = await t.make.apiKey({ maker: t.maker });
  await writeLines(t.owner, [
    { orgId: t.ada.orgId, keyId: key.id, at: new Date(Date.now() - 9 * dayMs), status: 403, code: 'forbidden' },
  ]);
  expect(await t.overview()).not.toContain('Call the API<span class="visually-hidden"> (completed)');
  expect(await t.overview()).toContain('rotate it to get a new one');
  await writeLines(t.owner, [{ orgId: t.ada.orgId, keyId: key.id, at: new Date(Date.now() - 8 * dayMs) }]);
  await t.make.keyRevoked(key);
  for (const step of ['Create an API key', 'Call the API'])
    expect(await t.overview()).toContain(`${step}<span class="visually-hidden"> (completed)`);

  const webhook = await insertWebhook(t, t.ada);
  // The step that is open leads to what closes it: a test event, and a real one.
  const open = await t.overview();
  expect(open).toContain(`/webhooks/${webhook.id}/test`);
  expect(open).toContain('/clients/seats/assign');
  await recordTestOutcome(t.em, t.request(webhook.id), { ...refused, eventId: 'e1' });
  expect(await t.overview()).toContain('Get started');
  await recordTestOutcome(t.em, t.request(webhook.id), { ...accepted, eventId: 'e2' });
  expect(await t.overview()).not.toContain('Get started');
  await t.visitor.submit(
    `/o/${t.ada.orgId}/webhooks/${webhook.id}/delete`,
    `/o/${t.ada.orgId}/webhooks/${webhook.id}/delete`,
  );
  expect(await t.overview()).not.toContain('Get started');
});

it('an arrived delivery completes the last step, and waiting deliveries are counted over all webhooks', async () => {
  const t = await setup();
  const [one, other] = [await insertWebhook(t, t.ada), await insertWebhook(t, t.ada)];
  for (const webhook of [one, other, other]) await t.make.delivery({ webhook });
  expect(await getOverview(t.owner.pool, t.ada.orgId)).toMatchObject({ waitingDeliveries: 3, hasDelivered: false });
  await t.make.delivery({ webhook: one, state: 'delivered' });
  expect(await getOverview(t.owner.pool, t.ada.orgId)).toMatchObject({ hasDelivered: true, webhooks: 2 });
});

it('failing, suspended and paused webhooks are listed separately', async () => {
  const t = await setup();
  const states = {
    failing: `failing_since = now()`,
    suspended: `state = 'parked', parked_reason = 'failing', failing_since = now()`,
    paused: `state = 'parked', parked_reason = 'paused'`,
  };
  for (const set of Object.values(states)) {
    const { id } = await insertWebhook(t, t.ada);
    await t.owner.pool.query(`update webhook set ${set} where id = $1`, [id]);
  }
  for (const status of Object.keys(states)) expect(await t.overview()).toContain(`1 webhook is ${status}.`);
});

it('the result of a test event appears on its webhook’s page and in the log, and on no other webhook’s page', async () => {
  const t = await setup();
  const [webhook, other] = [await insertWebhook(t, t.ada), await insertWebhook(t, t.ada)];
  const at = (id: string) => `/o/${t.ada.orgId}/webhooks/${id}`;
  expect((await t.visitor.get(at(webhook.id))).text).not.toContain('Latest test events');
  await recordTestOutcome(t.em, t.request(webhook.id), { ...accepted, eventId: 'e1' });
  await recordTestOutcome(t.em, t.request(webhook.id), { ...refused, eventId: 'e2' });
  const { text } = await t.visitor.get(at(webhook.id));
  const section = text.slice(text.indexOf('Latest test events'), text.indexOf('id="health"'));
  for (const words of ['client.started', '204', 'connection_refused', 'Failed', 'Ada Rivers'])
    expect(section).toContain(words);
  expect((await t.visitor.get(at(other.id))).text).not.toContain('Latest test events');
  const log = (await t.visitor.get(`/o/${t.ada.orgId}/activity`)).text;
  expect(log).toContain('Test event delivered (client.started)');
  expect(log).toContain('Test event failed (seat.given: connection_refused)');
});

it('a webhook allows ten test events and checks a minute; the eleventh is refused with a reason, and other webhooks are not affected', async () => {
  const t = await setup();
  const [webhook, other] = [await insertWebhook(t, t.ada), await insertWebhook(t, t.ada)];
  for (let count = 0; count < 5; count += 1) {
    await requestTest(t.em, t.request(webhook.id), null);
    await requestSignatureCheck(t.em, t.request(webhook.id));
  }
  for (const rest of ['test', 'verify']) {
    const path = `/o/${t.ada.orgId}/webhooks/${webhook.id}/${rest}`;
    const late = await t.visitor.submit(path, path, { type: 'client.started' });
    expect([late.status, late.text.includes('Wait a minute, and try again.')]).toEqual([422, true]);
  }
  await requestTest(t.em, t.request(other.id), null);
  await requestTest(t.em, { ...t.request(webhook.id), by: 'operator' }, null);
  await t.owner.pool.query(
    `update activity set at = at - interval '1 minute' where action in ('webhook.test', 'webhook.verify')`,
  );
  await requestTest(t.em, t.request(webhook.id), null);
});

it('the log shows a requested retry as a retry, and a redelivery as a redelivery', async () => {
  const t = await setup();
  const webhook = await insertWebhook(t, t.ada);
  const [open, settled] = [await t.make.delivery({ webhook }), await t.make.delivery({ webhook, state: 'delivered' })];
  await redeliverOne(t.em, { ...t.request(webhook.id), eventId: open }, { canRetryNow: true, onlyOpen: true });
  await redeliverOne(t.em, { ...t.request(webhook.id), eventId: settled }, { canRetryNow: true });
  const isLogged = async (action: string) =>
    (await t.visitor.get(`/o/${t.ada.orgId}/activity?action=${action}`)).text.includes('Ada Rivers');
  expect(await isLogged('delivery.retry')).toBe(true);
  const { text } = await t.visitor.get(`/o/${t.ada.orgId}/activity?action=delivery.retry`);
  expect(text).toContain('Retried a delivery');
  expect(text).not.toContain('>Redelivered an event</a>');
});
