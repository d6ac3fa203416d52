/** The steps of the overview, and the results of test events and retries. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { redeliverOne } from '#delivery/requests.ts';
import { recordTestOutcome, requestSignatureCheck, requestTest } from '#domain/webhooks/test-event.ts';
import { sumCalls } from '#test/sum-calls.ts';
import { writeEntries } from '#test/write-entries.ts';
import { getOverview } from '../../apps/console/pages/overview/query.ts';
import { setupConsole } from './setup.ts';
import { insertWebhook } from './webhook-stories.ts';

const dayMs = 86_400_000;
const accepted = { eventType: 'client.started', delivered: true, status: 204, cause: 'accepted' };
const rejected = { eventType: 'seat.given', delivered: false, status: null, cause: 'connection_refused' };

const plain = (text: string) =>
  text
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();

async function setup() {
  const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:9' });
  const ada = await t.enrol({ name: 'Ada Rivers' });
  const creator = { orgId: ada.orgId, userId: ada.personId, roleId: null };
  const visitor = t.http(ada);
  const request = (webhookId: string) => ({
    organizationId: ada.orgId,
    webhookId,
    by: { personId: ada.personId, address: '203.0.113.7' },
  });
  return { ...t, ada, creator, visitor, request, overview: async () => (await visitor.get(`/o/${ada.orgId}`)).text };
}

it('says when the next access begins, until it has begun', async () => {
  const t = await setup();
  const clients = async () =>
    /Clients \d+ \d+ with a seat(\. The next one begins on .{0,40})?/.exec(plain(await t.overview()))?.[0];
  const orgId = t.ada.orgId;
  const add = async (since: string) => {
    const familyId = await t.make.family({ orgId });
    await t.owner.pool.query(
      `insert into client_grant (organization_id, kind, professional_id, family_id, since)
       values ($1, 'neutral', $2, $3, $4)`,
      [orgId, t.ada.personId, familyId, since],
    );
  };
  expect(await clients()).toBe('Clients 0 0 with a seat');
  for (const since of ['2999-02-01T08:00:00Z', '2999-01-02T08:00:00Z']) await add(since);
  expect(await clients()).toMatch(/begins on .*(2999-01-02|Jan.* 2999)/);
  await t.owner.pool.query(`update client_grant set since = now()`);
  expect(await clients()).toBe('Clients 2 0 with a seat');
});

it('each step stays completed, also when the key is revoked or long unused, or the webhook is deleted', async () => {
  const t = await setup();
  expect(await t.overview()).toContain('Get started');
  const key = await t.make.apiKey({ creator: t.creator });
  await writeEntries(t.owner, [
    { orgId: t.ada.orgId, keyId: key.id, at: new Date(Date.now() - 9 * dayMs), status: 403, code: 'forbidden' },
  ]);
  expect(await t.overview()).not.toContain('Call the API<span class="visually-hidden"> (completed)');
  expect(await t.overview()).toContain('rotate it to get a new one');
  await writeEntries(t.owner, [{ orgId: t.ada.orgId, keyId: key.id, at: new Date(Date.now() - 8 * dayMs) }]);
  await t.make.keyRevoked(key);
  for (const step of ['Create an API key', 'Call the API'])
    expect(await t.overview()).toContain(`${step}<span class="visually-hidden"> (completed)`);

  const webhook = await insertWebhook(t, t.ada);
  // The open step links to what completes it: a test event, and a real one.
  const open = await t.overview();
  expect(open).toContain(`/webhooks/${webhook.id}/test`);
  expect(open).toContain('/clients/seats/assign');
  await recordTestOutcome(t.db, t.request(webhook.id), { ...rejected, eventId: randomUUID() });
  expect(await t.overview()).toContain('Get started');
  await recordTestOutcome(t.db, t.request(webhook.id), { ...accepted, eventId: randomUUID() });
  expect(await t.overview()).not.toContain('Get started');
  await t.visitor.submit(
    `/o/${t.ada.orgId}/webhooks/${webhook.id}/delete`,
    `/o/${t.ada.orgId}/webhooks/${webhook.id}/delete`,
  );
  expect(await t.overview()).not.toContain('Get started');
});

it('no two steps have the same button, also before the first webhook', async () => {
  const t = await setup();
  const text = await t.overview();
  const steps = text.slice(text.indexOf('<ol class="first-steps">'), text.indexOf('</ol>'));
  const buttons = [...steps.matchAll(/<a class="button[^>]*>([^<]*)<\/a>/g)].map(([, label]) => label);
  expect(buttons).toHaveLength(4);
  expect(new Set(buttons).size).toBe(4);
});

it('an arrived delivery completes the last step, and waiting deliveries are counted over all webhooks', async () => {
  const t = await setup();
  const [one, other] = [await insertWebhook(t, t.ada), await insertWebhook(t, t.ada)];
  for (const webhook of [one, other, other]) await t.make.delivery({ webhook });
  expect(await getOverview(t.owner, t.ada.orgId)).toMatchObject({ waitingDeliveries: 3, hasDelivered: false });
  await t.make.delivery({ webhook: one, state: 'delivered' });
  expect(await getOverview(t.owner, t.ada.orgId)).toMatchObject({ hasDelivered: true, webhooks: 2 });
});

it('webhooks and keys that need attention are listed by name, the worst first, each with what to do', async () => {
  const t = await setup();
  expect(await t.overview()).toContain('No problems found.');
  const states = {
    Paused: `state = 'paused'`,
    Suspended: `state = 'suspended', suspended_reason = 'failures'`,
    Failing: null,
  };
  for (const [status, set] of Object.entries(states)) {
    const { id } = await insertWebhook(t, t.ada, { description: `The ${status} one` });
    if (status !== 'Paused')
      await t.owner.pool.query('update receiver set failing_since = now() where webhook_id = $1', [id]);
    if (set !== null) await t.owner.pool.query(`update webhook set ${set} where id = $1`, [id]);
  }
  const key = await t.make.apiKey({ creator: t.creator, label: 'Old report' });
  await t.owner.pool.query(`update api_key set expires_at = now() + interval '3 days' where id = $1`, [key.id]);
  const text = await t.overview();
  const lines = [...text.matchAll(/<li><svg[\s\S]*?<\/li>/g)].map(([line]) => plain(line));
  expect(lines).toEqual([
    expect.stringMatching(/^The Failing one Failing All deliveries failing since .* See cause of The Failing one$/),
    expect.stringMatching(/^The Suspended one Suspended New events are held .* See cause of The Suspended one$/),
    expect.stringMatching(/^The Paused one Paused New events are held .* Resume… of The Paused one$/),
    expect.stringMatching(/^API key Old report Expires .* Rotate… Old report$/),
  ]);
  expect(text).toContain(`/keys/${key.id}/rotate`);
});

it('a replaced key needs attention while it is used instead of its replacement', async () => {
  const t = await setup();
  const old = await t.make.apiKey({ creator: t.creator, label: 'Old report' });
  const path = `/o/${t.ada.orgId}/keys/${old.id}/rotate`;
  await t.http(t.ada).submit(path, path, { overlapHours: '1', expiry: 'never' });
  const { rows } = await t.owner.pool.query('select id from api_key where predecessor_id = $1', [old.id]);
  const use = (keyId: string) => writeEntries(t.owner, [{ orgId: t.ada.orgId, keyId }]);
  const isListed = async () => (await t.overview()).includes('is still used instead of its replacement');
  expect(await isListed()).toBe(false);
  await use(old.id);
  expect(await isListed()).toBe(true);
  await use(rows[0].id);
  expect(await isListed()).toBe(false);
});

it('what samples and operators set up before the first sign-in completes no step', async () => {
  const t = await setup();
  const key = await t.make.apiKey({ creator: t.creator });
  await writeEntries(t.owner, [{ orgId: t.ada.orgId, keyId: key.id, at: new Date() }]);
  const webhook = await insertWebhook(t, t.ada);
  await t.make.delivery({ webhook, state: 'delivered' });
  expect(await t.overview()).not.toContain('Get started');
  for (const table of ['api_key', 'webhook'])
    await t.owner.pool.query(`update ${table} set created_at = now() - interval '1 day' where organization_id = $1`, [
      t.ada.orgId,
    ]);
  const text = await t.overview();
  expect(text).not.toContain('(completed)');
  for (const button of ['Create API key', 'View API keys', 'Add webhook', 'Send test event'])
    expect(text).toMatch(new RegExp(`<a class="button[^"]*" href="[^"]*">${button}</a>`));
});

it('deliveries and calls of 24 hours are rendered with their numbers in words and in a table, and failures with their cause', async () => {
  const t = await setup();
  const [one, other] = [await insertWebhook(t, t.ada), await insertWebhook(t, t.ada, { description: 'Reporting' })];
  const failed = { status: 503, cause: 'answered_unavailable' };
  await t.make.delivery({ webhook: one, state: 'delivered', attempts: [{ status: 200, cause: 'accepted' }] });
  await t.make.delivery({ webhook: other, state: 'exhausted', attempts: [failed] });
  await t.make.delivery({ webhook: one, state: 'delivered', attempts: [failed, { status: 200, cause: 'accepted' }] });
  const key = await t.make.apiKey({ creator: t.creator });
  const line = { orgId: t.ada.orgId, keyId: key.id, at: new Date() };
  await writeEntries(t.owner, [line, line, { ...line, status: 403, code: 'forbidden' }]);
  await sumCalls(t.owner);
  const text = await t.overview();
  const [, deliveries, calls] = text.split('<figure class="chart">');
  expect(deliveries).toContain('1 delivered on first attempt, 1 delivered after retries, 1 failed.');
  expect(calls).toContain('2 successful, 1 unsuccessful, 0 rate limited.');
  for (const chart of [deliveries, calls])
    expect(chart).toMatch(/<g class="bar"><title><time [^>]*>\d{4}-\d\d-\d\d \d\d:00:00 UTC<\/time>: /);
  expect(plain(deliveries?.slice(deliveries.indexOf('<tbody'), deliveries.indexOf('</tbody')) ?? '')).toMatch(/1 1 1$/);
  const failures = text.slice(text.indexOf('id="failures"'), text.indexOf('id="counts"'));
  expect(failures.match(/<tr role="row">/g)).toHaveLength(2);
  expect(plain(failures)).toMatch(/Failed Reporting 503 The receiver is not available/);
});

it('the result of a test event appears on its webhook’s page and in the log, and on no other webhook’s page', async () => {
  const t = await setup();
  const [webhook, other] = [await insertWebhook(t, t.ada), await insertWebhook(t, t.ada)];
  const at = (id: string) => `/o/${t.ada.orgId}/webhooks/${id}`;
  expect((await t.visitor.get(at(webhook.id))).text).not.toContain('Latest test events');
  await recordTestOutcome(t.db, t.request(webhook.id), { ...accepted, eventId: randomUUID() });
  await recordTestOutcome(t.db, t.request(webhook.id), { ...rejected, eventId: randomUUID() });
  const { text } = await t.visitor.get(at(webhook.id));
  const section = text.slice(
    text.indexOf('Latest test events'),
    text.indexOf('</section>', text.indexOf('Latest test events')),
  );
  for (const words of ['client.started', '204', 'The receiver refused the connection', 'Failed', 'Ada Rivers'])
    expect(section).toContain(words);
  expect((await t.visitor.get(at(other.id))).text).not.toContain('Latest test events');
  const log = (await t.visitor.get(`/o/${t.ada.orgId}/audit-log`)).text;
  expect(log).toContain('Test event delivered (client.started)');
  expect(log).toContain('Test event failed (seat.given)');
});

it('an organization may send twenty test events and checks a minute, of all its webhooks and also at once; more are rejected with a reason', async () => {
  const t = await setup();
  const [webhook, other, third] = [
    await insertWebhook(t, t.ada),
    await insertWebhook(t, t.ada),
    await insertWebhook(t, t.ada),
  ];
  const requested = Array.from({ length: 10 }, () => [
    requestTest(t.db, t.request(webhook.id), null),
    requestSignatureCheck(t.db, t.request(other.id)),
    requestTest(t.db, t.request(third.id), null),
  ]);
  const ends = await Promise.allSettled(requested.flat());
  expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(20);
  for (const rest of ['test', 'verify']) {
    const path = `/o/${t.ada.orgId}/webhooks/${webhook.id}/${rest}`;
    const late = await t.visitor.submit(path, path, { type: 'client.started' });
    expect([late.status, late.text.includes('Wait a minute, and try again.')]).toEqual([422, true]);
  }
  await expect(requestTest(t.db, t.request(other.id), null)).rejects.toMatchObject({ reason: 'too_many_tests' });
  await requestTest(t.owner, { ...t.request(webhook.id), by: 'orgctl' }, null);
  await t.owner.pool.query(
    `update audit_entry set at = at - interval '1 minute' where action in ('webhook.test', 'webhook.verify')`,
  );
  await requestTest(t.db, t.request(webhook.id), null);
  // PostgreSQL's clock was set back: those of its hour ahead are no tests of the last minute.
  await t.owner.pool.query(`update audit_entry set at = at + interval '1 hour' where action like 'webhook.%'`);
  await requestTest(t.db, t.request(webhook.id), null);
});

it('the log shows a requested retry as a retry, and a redelivery as a redelivery', async () => {
  const t = await setup();
  const webhook = await insertWebhook(t, t.ada);
  const [open, settled] = [await t.make.delivery({ webhook }), await t.make.delivery({ webhook, state: 'delivered' })];
  await redeliverOne(t.db, { ...t.request(webhook.id), eventId: open }, { onlyOpen: true });
  await redeliverOne(t.db, { ...t.request(webhook.id), eventId: settled });
  const isLogged = async (action: string) =>
    (await t.visitor.get(`/o/${t.ada.orgId}/audit-log?action=${action}`)).text.includes('Ada Rivers');
  expect(await isLogged('delivery.retry')).toBe(true);
  const { text } = await t.visitor.get(`/o/${t.ada.orgId}/audit-log?action=delivery.retry`);
  expect(text).toContain('Retried a delivery');
  expect(text).not.toContain('>Redelivered an event</a>');
});
