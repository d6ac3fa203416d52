/**
 * The options of a webhook in the console: its order, its requests per second, its custom headers,
 * a second one with its URL, and why it is held.
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
  const added = (await t.visitor.submit(rejected, t.at('/new'), confirmed)).text;
  expect(added).toContain('Webhook added');
  expect(added).toMatch(/href="http[^"]+\/docs#kits"/);
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

it('the form sets and removes a bound of requests per second, which the page of the webhook shows', async () => {
  const t = await setup();
  const page = t.at(`/${t.webhook.id}`);
  const fields = {
    url: 'https://hooks.example.com/events',
    eventTypes: ['client.started'],
    description: '',
    postsPerSecond: '5',
  };
  const save = (postsPerSecond: string) =>
    t.visitor.submit(`${page}/edit`, `${page}/edit`, { ...fields, postsPerSecond });
  const shown = async () => (await t.visitor.get(`${page}?tab=settings`)).text;
  expect(await shown()).toContain('No limit');
  expect((await save('5')).to).toBe(page);
  expect(await shown()).toContain('At most 5');
  expect((await t.visitor.get(`${page}/edit`)).text).toMatch(/name="postsPerSecond"[^>]*value="5"/);
  for (const wrong of ['0', '101', '1.5', '-1', 'many']) {
    const rejected = await save(wrong);
    expect([wrong, rejected.status, rejected.text.includes('Enter a whole number from 1 to 100')]).toEqual([
      wrong,
      422,
      true,
    ]);
  }
  expect((await save('')).to).toBe(page);
  expect(await t.rows('select posts_per_second from webhook')).toEqual([{ posts_per_second: null }]);
});

it('custom headers are listed by name, replaced and removed, each with a fresh second factor', async () => {
  const t = await setup();
  const headers = t.at(`/${t.webhook.id}/headers`);
  const set = (name: string, value: string) => t.visitor.submit(headers, headers, { name, value });
  expect((await t.visitor.get(headers)).text).toContain('No custom headers.');
  expect((await set('X-Tenant', ' alder ')).to).toBe(headers);
  expect((await set('x-tenant', 'birch')).to).toBe(headers);
  const { text } = await t.visitor.get(headers);
  expect(text).toContain('<code>x-tenant</code>');
  expect(text).not.toMatch(/alder|birch|X-Tenant/);
  const log = await t.visitor.get(`/o/${t.ada.orgId}/audit-log`);
  expect(log.text).toContain('custom headers');
  const [entry] = await t.rows(`select id from audit_entry where action = 'webhook.change' order by at, id`);
  const details = await t.visitor.get(`/o/${t.ada.orgId}/audit-log/${(entry as { id: string }).id}`);
  expect(details.text).toContain('– → X-Tenant');

  t.pass(6 * 60_000);
  expect((await t.visitor.get(headers)).text).toContain('Confirm your identity');
  const again = t.http({ sessionToken: t.ada.sessionToken });
  const stale = await again.post(headers, { _token: '', name: 'X-Key', value: 'x' });
  expect(stale.status).not.toBe(303);
  expect(await t.rows('select header_names from webhook')).toEqual([{ header_names: ['x-tenant'] }]);
});

it('a URL on another server is saved once the removal of the custom headers is confirmed', async () => {
  const t = await setup();
  const page = t.at(`/${t.webhook.id}`);
  await t.visitor.submit(`${page}/headers`, `${page}/headers`, { name: 'X-Tenant', value: 'alder' });
  const fields = { url: 'https://hooks.example.org/events', eventTypes: ['client.started'], description: '' };
  const rejected = await t.visitor.submit(`${page}/edit`, `${page}/edit`, fields);
  expect([rejected.status, rejected.text.includes('must not get the values of X-Tenant')]).toEqual([422, true]);
  expect(rejected.text).toContain('Remove the custom headers');
  const confirmed = { ...fields, removeHeaders: 'on' };
  expect((await t.visitor.submit(rejected, `${page}/edit`, confirmed)).status).not.toBe(422);
  expect(await t.rows('select url, header_names from webhook')).toEqual([
    { url: 'https://hooks.example.org/events', header_names: [] },
  ]);
});
