/** Deliveries in the console: lists, details and actions. */
import { describe, expect, it } from 'vitest';
import { readLedger } from '#domain/webhooks/ledger.ts';
import { unescaped } from '#test/http-visitor.ts';
import { setupConsole } from './setup.ts';
import { fillAttempts, hostileResponse, insertDeliveries, insertWebhook, makeDeliveries } from './webhook-stories.ts';

async function setup() {
  const t = await setupConsole();
  const ada = await t.enrol({ name: 'Ada Rivers' });
  const visitor = t.http(ada);
  const webhook = await insertWebhook(t, ada);
  const at = (rest: string) => `/o/${ada.orgId}/webhooks/${webhook.id}${rest}`;
  const get = (rest: string) => visitor.get(at(rest));
  const submit = (rest: string, values: Record<string, string> = {}) => visitor.submit(at(rest), at(rest), values);
  /** Chooses deliveries to redeliver, and returns the page that asks for confirmation. */
  const review = (values: Record<string, string>) => get(`/redeliver/review?${new URLSearchParams(values)}`);
  const confirm = async (values: Record<string, string>) =>
    visitor.submit(await review(values), at('/redeliver/review'));
  return { ...t, ada, visitor, webhook, at, get, submit, review, confirm };
}

/** Returns the ids of the events that a page lists, in order. */
const listed = (text: string) => [...text.matchAll(/<a id="d-[0-9a-f-]{36}-([0-9a-f-]{36})"/g)].map(([, id]) => id);
const findOlder = (text: string) => unescaped(/rel="next" href="([^"]*)"/.exec(text)?.[1] ?? '');

describe('the list of deliveries', () => {
  it('shows each delivery once, newest first, and keeps the filter on every page', async () => {
    const t = await setup();
    await insertDeliveries(t, t.webhook, { count: 60, failsEvery: 2 });
    const { rows } = await t.owner.pool.query<{ id: string }>(
      `select event_id as id from delivery where state = 'exhausted' order by event_id desc`,
    );
    const seen: (string | undefined)[] = [];
    let page = await t.get('/deliveries?status=failed');
    for (;;) {
      seen.push(...listed(page.text));
      const older = findOlder(page.text);
      if (older === '') break;
      expect(older).toContain('status=failed');
      page = await t.visitor.get(older);
    }
    expect(rows).toHaveLength(30);
    expect(seen).toEqual(rows.map(({ id }) => id));
  });

  it('is filtered by event id and by time in the viewer’s zone, and explains a filter that cannot match', async () => {
    const t = await setup();
    const { delivered, waiting } = await makeDeliveries(t, t.webhook);
    expect(listed((await t.get(`/deliveries?event=${delivered.toUpperCase()}`)).text)).toEqual([delivered]);
    const zone = 'Asia/Kolkata';
    const inKolkata = (minutes: number) =>
      new Date(Date.now() - minutes * 60_000 + 330 * 60_000).toISOString().slice(0, 16);
    const query = new URLSearchParams({ from: inKolkata(60), until: inKolkata(0), zone });
    expect(listed((await t.get(`/deliveries?${query}`)).text)).toEqual([waiting]);
    expect((await t.get('/deliveries?event=17')).text).toContain('Enter a valid event ID');
    const { text } = await t.get('/deliveries?from=xx');
    expect(text).toContain('Enter a date and a time. This filter was not applied.');
    for (const bad of ['state=%00', 'type=x', 'from=yesterday', 'zone=%3Cb%3E', 'before=1', 'event=%00'])
      expect([bad, (await t.get(`/deliveries?${bad}`)).status]).toEqual([bad, 200]);
  });

  it('requests itself every 5 seconds, and more often while a delivery changes', async () => {
    const t = await setup();
    await insertDeliveries(t, t.webhook, { count: 3 });
    expect((await t.get('/deliveries')).text).toContain('hx-trigger="every 5s, refresh"');
    await makeDeliveries(t, t.webhook);
    expect((await t.get('/deliveries')).text).toMatch(/hx-get="[^"]*\/deliveries" hx-trigger="every 5s, refresh"/);
    await t.owner.pool.query(`update delivery set due_at = now() where due_at is not null`);
    expect((await t.get('/deliveries')).text).toContain('hx-trigger="every 2s, refresh"');
  });
});

describe('the list across webhooks', () => {
  it('shows the deliveries of all webhooks with their webhook, and is filtered by webhook, status and event', async () => {
    const t = await setup();
    const other = await insertWebhook(t, t.ada, { description: 'Billing' });
    const mine = await makeDeliveries(t, t.webhook);
    const theirs = await makeDeliveries(t, other);
    const all = `/o/${t.ada.orgId}/deliveries`;
    const { text } = await t.visitor.get(all);
    expect(listed(text)).toHaveLength(6);
    expect(text).toMatch(/<th[^>]*>Webhook<\/th>/);
    expect(text).toContain(`href="/o/${t.ada.orgId}/webhooks/${other.id}/deliveries/${theirs.waiting}"`);
    expect(listed((await t.visitor.get(`${all}?webhook=${other.id}`)).text)).toEqual([
      theirs.waiting,
      theirs.delivered,
      theirs.exhausted,
    ]);
    const failed = listed((await t.visitor.get(`${all}?status=failed`)).text);
    expect(failed.sort()).toEqual([mine.exhausted, theirs.exhausted].sort());
    expect(listed((await t.visitor.get(`${all}?event=${mine.delivered}`)).text)).toEqual([mine.delivered]);
    expect((await t.visitor.get(`${all}?event=17`)).text).toContain('Enter a valid event ID');
    expect((await t.visitor.get(`${all}?status=cancelled`)).text).toContain('No matching deliveries');
    for (const bad of ['webhook=x', 'before=1', 'before=..', 'state=%00'])
      expect([bad, (await t.visitor.get(`${all}?${bad}`)).status]).toEqual([bad, 200]);
  });

  it('shows each delivery once over its pages, and keeps the filter', async () => {
    const t = await setup();
    const other = await insertWebhook(t, t.ada, { description: 'Billing' });
    await insertDeliveries(t, t.webhook, { count: 40, failsEvery: 2 });
    await makeDeliveries(t, other);
    const seen: (string | undefined)[] = [];
    for (let path = `/o/${t.ada.orgId}/deliveries?status=delivered`; path !== ''; ) {
      const { text } = await t.visitor.get(path);
      seen.push(...listed(text));
      path = findOlder(text);
      if (path !== '') expect(path).toContain('status=delivered');
    }
    expect(seen).toHaveLength(21);
    expect(new Set(seen).size).toBe(21);
  });

  it('sends the selected deliveries of several webhooks again, skips a paused webhook, and offers none of a deleted one', async () => {
    const t = await setup();
    const other = await insertWebhook(t, t.ada, { description: 'Billing' });
    const deleted = await insertWebhook(t, t.ada, { description: 'Old system' });
    const mine = await makeDeliveries(t, t.webhook);
    const theirs = await makeDeliveries(t, other);
    const gone = await makeDeliveries(t, deleted);
    await t.owner.pool.query(`update webhook set state = 'deleted', number = null where id = $1`, [deleted.id]);
    const all = `/o/${t.ada.orgId}/deliveries`;
    const { text } = await t.visitor.get(all);
    expect(text).toContain(`value="${other.id}.${theirs.delivered}"`);
    expect(text).not.toContain(`value="${deleted.id}.${gone.delivered}"`);
    const selected = [`${t.webhook.id}.${mine.delivered}`, `${other.id}.${theirs.delivered}`];
    const query = new URLSearchParams(selected.map((key) => ['delivery', key]));
    const review = await t.visitor.get(`${all}/redeliver?${query}`);
    expect(review.text).toContain('<strong>1 event</strong> to');
    expect(review.text).toContain('Billing');
    await t.visitor.submit(
      await t.visitor.get(`/o/${t.ada.orgId}/webhooks/${other.id}/pause`),
      `/o/${t.ada.orgId}/webhooks/${other.id}/pause`,
    );
    const sent = await t.visitor.submit(review, `${all}/redeliver`, { delivery: selected });
    expect(sent.to).toBe(all);
    expect((await t.visitor.get(all)).text).toContain('Redelivery of 1 event requested. 1 event can’t be sent again.');
    const rows = await t.owner.pool.query(`select event_id as id from delivery where state = 'queued'`);
    expect(rows.rows).toEqual([{ id: mine.delivered }]);
  });

  it('is empty with a hint, and is closed to members without the permission and to other organizations', async () => {
    const t = await setup();
    const bo = await t.enrol({ name: 'Bo Strange' });
    await makeDeliveries(t, t.webhook);
    const { text } = await t.http(bo).get(`/o/${bo.orgId}/deliveries`);
    expect(text).toContain('No deliveries yet');
    expect(listed((await t.http(bo).get(`/o/${bo.orgId}/deliveries?webhook=${t.webhook.id}`)).text)).toEqual([]);
    expect((await t.http(bo).get(`/o/${t.ada.orgId}/deliveries`)).status).toBe(404);
    const reader = await t.enrol({ orgId: t.ada.orgId, permissions: ['org.read'] });
    expect((await t.http(reader).get(`/o/${t.ada.orgId}/deliveries`)).status).toBe(403);
    expect((await t.http(reader).get(`/o/${t.ada.orgId}/deliveries/redeliver`)).status).toBe(403);
  });
});

describe('one delivery', () => {
  it('shows its body, each attempt with cause and remedy, and when the next one is due by the server’s clock', async () => {
    const t = await setup();
    const { waiting } = await makeDeliveries(t, t.webhook);
    await t.owner.pool.query(
      `update delivery set due_at = now() + interval '3 minutes 20 seconds' where due_at is not null`,
    );
    t.pass(24 * 60_000); // the console's clock, which does not count here
    const { text } = await t.get(`/deliveries/${waiting}`);
    expect(text).toMatch(/Next attempt in 3 min (19|20) s/);
    expect(text).toContain('Attempt 2');
    expect(text).toContain('No connection was established in time');
    expect(text).toContain('look for the error in its log');
    expect(unescaped(text)).toContain(`{"id":"${waiting}","type":"client.started"}`);
    expect(text).toContain('Timing: DNS lookup 34 ms, Connect 87 ms, TLS 142 ms');
  });

  it('shows the request and the response of an attempt, and no response content runs or disappears', async () => {
    const t = await setup();
    const { exhausted } = await makeDeliveries(t, t.webhook);
    await fillAttempts(t, exhausted, { response: hostileResponse });
    const { text } = await t.get(`/deliveries/${exhausted}/attempts/2`);
    const response = /<pre class="received json"[\s\S]*?<\/pre>/.exec(text)?.[0] ?? '';
    expect(response).toContain('&lt;script&gt;document.title');
    expect(response).not.toMatch(/<script|<img/);
    for (const point of ['0007', '202E', '200B']) expect(response).toContain(`<span class="unseen">U+${point}</span>`);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that none is left is what is tested.
    expect(response).not.toMatch(/[\u0000-\u0008\u202A-\u202E\u2066-\u2069\u200B-\u200F]/);
    expect(text).toContain('Bytes that are not UTF-8');
    expect(unescaped(text)).toContain(`webhook-id: ${exhausted}`);
    expect(unescaped(text)).toContain('Service-Signature: t=1795000000,v1=');
    expect(text).toContain('Host, Content-Length and Connection were also sent');
    const cause = `update delivery_attempt set cause = 'tls_self_signed', status = null where event_id = $1`;
    await t.owner.pool.query(cause, [exhausted]);
    const untrusted = (await t.get(`/deliveries/${exhausted}/attempts/2`)).text;
    expect(untrusted).toContain('This request did not reach the receiver');
    expect(untrusted).not.toContain('were also sent');
    for (const number of ['3', '0', '-1', '1e1', '99999999999', 'x'])
      expect([number, (await t.get(`/deliveries/${exhausted}/attempts/${number}`)).status]).toEqual([number, 404]);
  });

  it('with 16 KiB of control characters adds only a few kilobytes to its page', async () => {
    const t = await setup();
    const { exhausted } = await makeDeliveries(t, t.webhook);
    await fillAttempts(t, exhausted, { response: Buffer.alloc(16_384, '\u202E') });
    const { text } = await t.get(`/deliveries/${exhausted}/attempts/1`);
    expect(text).toContain('U+202E ×5461');
    expect(text).toContain('the first 16 KiB');
    expect(text.length).toBeLessThan(20_000);
  });

  it('is cancelled permanently, with its audit entry, and offers no further action', async () => {
    const t = await setup();
    const { waiting, delivered } = await makeDeliveries(t, t.webhook);
    const before = await readLedger(t.owner);
    expect((await t.submit(`/deliveries/${waiting}/cancel`)).to).toBe(t.at(`/deliveries/${waiting}`));
    const { text } = await t.get(`/deliveries/${waiting}`);
    expect(text).toContain('Delivery cancelled');
    expect(text).not.toContain('Retry now');
    expect(await readLedger(t.owner)).toEqual({ ...before, waiting: 0, cancelled: 1 });
    const entries = await t.owner.pool.query(`select person_id from audit_entry where action = 'delivery.cancel'`);
    expect(entries.rows).toEqual([{ person_id: t.ada.personId }]);
    expect((await t.get(`/deliveries/${delivered}/cancel`)).text).toContain('already finished');
    expect(text).not.toContain('<dt>Round</dt>');
  });

  it('starts its schedule again when it is redelivered; a retry that comes too late is rejected', async () => {
    const t = await setup();
    const { delivered, waiting } = await makeDeliveries(t, t.webhook);
    await t.submit(`/deliveries/${delivered}`, { how: 'redeliver' });
    const rows = await t.owner.pool.query('select state, failures from delivery where event_id = $1', [delivered]);
    expect(rows.rows).toEqual([{ state: 'queued', failures: 0 }]);
    // Its last attempt did not fail.
    expect((await t.get(`/deliveries/${delivered}`)).text).toMatch(/<dd>Next attempt due now<\/dd>/);
    const open = await t.get(`/deliveries/${waiting}`);
    await t.owner.pool.query(
      `update delivery set state = 'delivered', settled_at = now(), due_at = null where event_id = $1`,
      [waiting],
    );
    const late = await t.visitor.submit(open, t.at(`/deliveries/${waiting}`), { how: 'retry' });
    expect(late.status).toBe(422);
    expect(late.text).toContain('This delivery is already delivered');
  });
});

describe('redelivering many events', () => {
  it('runs once at a time, shows its progress, and can be stopped', async () => {
    const t = await setup();
    await makeDeliveries(t, t.webhook);
    const requested = await t.confirm({ what: 'failed', hours: '720' });
    expect(requested.to).toMatch(/\/redeliveries\/[0-9a-f-]{36}$/);
    const path = requested.to ?? '';
    const page = await t.visitor.get(path);
    expect(page.text).toContain('Pending');
    expect(page.text).toContain('hx-trigger="every 2s, refresh"');
    expect((await t.get('/redeliver')).text).toContain('A redelivery is in progress');
    expect((await t.visitor.submit(page, path)).to).toBe(path);
    const stopped = await t.visitor.get(path);
    expect(stopped.text).toContain('Cancelled');
    expect(stopped.text).not.toContain('hx-get');
    expect(stopped.text).not.toContain('Stop redelivery');
  });

  it('of a period requires both ends in order within the last 30 days, and keeps the input', async () => {
    const t = await setup();
    const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 16);
    await makeDeliveries(t, t.webhook);
    const range = (from: string, until: string) => t.review({ what: 'range', from, until, zone: 'UTC' });
    expect((await range('', day(1))).text).toContain('Enter a date and a time');
    const reversed = await range(day(1), day(2));
    expect(reversed.text).toContain('Enter an end that is after the start.');
    expect(reversed.text).toContain(`value="${day(1)}"`);
    expect((await range(day(40), day(1))).text).toContain('last 30 days');
    expect((await range(day(2), day(1))).text).toContain('No events to redeliver');
    const times = { what: 'range', from: day(2), until: day(-1), zone: 'UTC' };
    expect((await t.confirm(times)).status).toBe(303);
    const rows = await t.owner.pool.query('select range_from = $1 as right, requested_by from redelivery', [
      `${day(2)}:00Z`,
    ]);
    expect(rows.rows).toEqual([{ right: true, requested_by: t.ada.personId }]);
  });
});

describe('a redelivery', () => {
  it('shows how many events it sends, and sends none before that is confirmed', async () => {
    const t = await setup();
    await insertDeliveries(t, t.webhook, { count: 30, failsEvery: 2 });
    const settled = async () =>
      (await t.owner.pool.query(`select count(*)::int as n from delivery where due_at is null`)).rows[0].n;
    const before = await settled();
    const failed = await t.review({ what: 'failed', hours: '720' });
    expect(failed.text).toContain('Redeliver 15 events?');
    const until = new Date(Date.now() + 60_000).toISOString().slice(0, 16);
    const from = new Date(Date.now() - 29 * 86_400_000).toISOString().slice(0, 16);
    expect((await t.review({ what: 'range', from, until, zone: 'UTC' })).text).toContain('Redeliver 30 events?');
    expect(await settled()).toBe(before);
    expect((await t.owner.pool.query('select from redelivery')).rowCount).toBe(0);
    expect((await t.visitor.submit(failed, t.at('/redeliver/review'))).to).toMatch(/redeliveries/);
  });

  it('of selected deliveries sends these and no others, each with its entry, and skips a cancelled one', async () => {
    const t = await setup();
    const { delivered, exhausted, waiting: cancelled } = await makeDeliveries(t, t.webhook);
    await t.submit(`/deliveries/${cancelled}/cancel`);
    const list = await t.get('/deliveries');
    const formatSelected = (eventId: string) => `${t.webhook.id}.${eventId}`;
    expect(list.text).toContain(`value="${formatSelected(delivered)}"`);
    expect(list.text).not.toContain(`value="${formatSelected(cancelled)}"`);
    const selected = [delivered, exhausted, cancelled].map(formatSelected);
    const action = `/o/${t.ada.orgId}/deliveries/redeliver`;
    const query = new URLSearchParams(selected.map((key) => ['delivery', key]));
    const review = await t.visitor.get(`${action}?webhook=${t.webhook.id}&${query}`);
    expect(review.text).toContain('Redeliver 3 events?');
    const sent = await t.visitor.submit(review, action, { delivery: selected });
    expect(sent.to).toBe(t.at('/deliveries'));
    expect((await t.visitor.get(sent.to ?? '')).text).toContain(
      'Redelivery of 2 events requested. 1 event can’t be sent again.',
    );
    const { rows } = await t.owner.pool.query<{ id: string }>(
      `select event_id as id from delivery where state = 'queued' order by event_id`,
    );
    expect(rows.map(({ id }) => id)).toEqual([delivered, exhausted].sort());
    const entries = await t.owner.pool.query(`select detail ->> 'eventId' as id from audit_entry
      where action = 'delivery.redeliver' order by 1`);
    expect(entries.rows.map(({ id }) => id)).toEqual([delivered, exhausted].sort());
    expect((await t.visitor.get(action)).text).toContain('Select at least one delivery.');
    const malformed = await t.visitor.get(`${action}?delivery=x`);
    expect([malformed.status, malformed.text.includes('No deliveries selected')]).toEqual([200, true]);
  });
});

describe('a wrong webhook in the address', () => {
  it('finds no delivery, attempt or redelivery, and changes nothing', async () => {
    const t = await setup();
    const { waiting, delivered } = await makeDeliveries(t, t.webhook);
    const requested = await t.confirm({ what: 'failed', hours: '24' });
    const redelivery = requested.to?.split('/').at(-1);
    const mine = await insertWebhook(t, t.ada, { description: 'Another of mine' });
    const before = await t.owner.pool.query('select event_id, state, run, due_at from delivery order by 1');
    const base = `/o/${t.ada.orgId}/webhooks/${mine.id}`;
    const _token = /name="_token" value="([^"]*)"/.exec((await t.visitor.get('/account')).text)?.[1] ?? '';
    for (const rest of [
      `/deliveries/${waiting}`,
      `/deliveries/${delivered}/attempts/1`,
      `/deliveries/${waiting}/cancel`,
      `/redeliveries/${redelivery}`,
    ])
      expect([rest, (await t.visitor.get(base + rest)).status]).toEqual([rest, 404]);
    for (const [rest, values] of [
      [`/deliveries/${delivered}`, { how: 'redeliver', _form: crypto.randomUUID() }],
      [`/deliveries/${waiting}/cancel`, {}],
      [`/redeliveries/${redelivery}`, {}],
    ] as const)
      expect([rest, (await t.visitor.post(base + rest, { _token, ...values })).status]).toEqual([rest, 404]);
    expect(await t.owner.pool.query('select event_id, state, run, due_at from delivery order by 1')).toMatchObject({
      rows: before.rows,
    });
    const rows = await t.owner.pool.query('select cancel_requested_at from redelivery');
    expect(rows.rows).toEqual([{ cancel_requested_at: null }]);
  });
});
