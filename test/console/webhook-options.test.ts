/**
 * The options of a webhook in the console: its order, a second one with its URL, and why it is
 * held.
 */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { setupConsole } from './setup.ts';
import { insertWebhook } from './webhook-stories.ts';

async function setup() {
  const t = await setupConsole();
  const ada = await t.enrol();
  const visitor = t.http(ada);
  const webhook = await insertWebhook(t, ada);
  const at = (rest: string) => `/o/${ada.orgId}/webhooks${rest}`;
  const rows = async (text: string) => (await t.owner.pool.query(text)).rows;
  return { ...t, ada, visitor, webhook, at, rows };
}

it('a second webhook with a URL is added only after a confirmation', async () => {
  const t = await setup();
  const fields = { url: 'https://Hooks.example.com:443/events', eventTypes: ['client.started'], description: '' };
  const rejected = await t.visitor.submit(t.at('/new'), t.at('/new'), fields);
  expect(rejected.status).toBe(422);
  expect(rejected.text).toContain('get each event twice');
  expect(rejected.text).toContain('Send each event to this URL twice');
  expect(await t.rows('select from webhook')).toHaveLength(1);
  const confirmed = { ...fields, allowSameUrl: 'on' };
  expect((await t.visitor.submit(rejected, t.at('/new'), confirmed)).text).toContain('Webhook added');
  expect(await t.rows('select from webhook')).toHaveLength(2);
});

it('a new webhook is offered with order, which its page shows and its form turns off', async () => {
  const t = await setup();
  expect((await t.visitor.get(t.at('/new'))).text).toMatch(/<input[^>]*name="ordered"[^>]*checked/);
  const page = t.at(`/${t.webhook.id}`);
  expect((await t.visitor.get(`${page}?tab=settings`)).text).toContain(
    'The events of each client and each seat, in order',
  );
  const fields = { url: 'https://hooks.example.com/events', eventTypes: ['client.started'], description: '' };
  await t.visitor.submit(`${page}/edit`, `${page}/edit`, fields);
  expect((await t.visitor.get(`${page}?tab=settings`)).text).toContain('Any order');
});

it('a webhook that its receiver holds says until when, and a blocked delivery for what it waits', async () => {
  const t = await setup();
  await t.owner.pool.query(`update receiver set retry_after_until = now() + interval '20 minutes'`);
  const { text } = await t.visitor.get(t.at(`/${t.webhook.id}`));
  expect(text).toContain('Retry-After');
  const grant = randomUUID();
  for (const _ of [1, 2])
    await t.owner.pool.query(`select record_event($1, 'client.started', '{}', $2)`, [t.ada.orgId, grant]);
  const list = await t.visitor.get(t.at(`/${t.webhook.id}/deliveries`));
  expect(list.text.match(/Waiting for an earlier event of the same client or seat/g)).toHaveLength(1);
});
