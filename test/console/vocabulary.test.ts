/** One word for one thing: on pages, in filters, in addresses and in downloads. */
import { expect, it } from 'vitest';
import { results } from '#domain/audit-log/results.ts';
import { deliveryStatuses } from '#domain/webhooks/status.ts';
import { writeEntries } from '#test/write-entries.ts';
import { formatQueryName } from '../../apps/console/components/list-filter.ts';
import { setupConsole } from './setup.ts';
import { insertWebhook } from './webhook-stories.ts';

const plain = (text: string) =>
  text
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
/** Returns the rows of a page's table as text. */
const listRows = (text: string) => text.split('<tr role="row">').slice(2).map(plain);
/** Matches the result in a line of the CSV, the only field that is one of these words. */
const resultPattern = new RegExp(`,"(${results.join('|')})",`);
const listOptions = (text: string, name: string) => {
  const select = new RegExp(`<select[^>]*name="${name}".*?</select>`, 's').exec(text)?.[0] ?? '';
  return [...select.matchAll(/<option value="([^"]*)"[^>]*>([^<]*)/g)].map(([, value, label]) => [value, label]);
};

async function setup() {
  const t = await setupConsole();
  const ada = await t.enrol({ name: 'Ada Rivers' });
  return { ...t, ada, visitor: t.http(ada) };
}

it('each status of a delivery has one word: in its badge, in the filter, in the address; and each filter lists its own', async () => {
  const t = await setup();
  const webhook = await insertWebhook(t, t.ada);
  const paused = await insertWebhook(t, t.ada, { description: 'Paused' });
  const failed = { status: 503, cause: 'answered_unavailable' };
  const inProgress = { status: null, finishedAt: null };
  const made = {
    Pending: await t.make.delivery({ webhook }),
    Delivering: await t.make.delivery({ webhook, state: 'running', attempts: [failed, inProgress] }),
    Retrying: await t.make.delivery({ webhook, state: 'running', attempts: [failed] }),
    Held: await t.make.delivery({ webhook: paused }),
    Delivered: await t.make.delivery({ webhook, state: 'delivered', attempts: [{ status: 200 }] }),
    Failed: await t.make.delivery({ webhook, state: 'exhausted', attempts: [{ ...failed, endsSchedule: true }] }),
    Cancelled: await t.make.delivery({ webhook, state: 'cancelled' }),
  };
  await t.owner.pool.query(`update webhook set state = 'paused' where id = $1`, [paused.id]);
  expect(Object.keys(made)).toEqual(deliveryStatuses);
  const list = `/o/${t.ada.orgId}/deliveries`;
  const options = listOptions((await t.visitor.get(list)).text, 'status');
  expect(options).toEqual([['', 'Any'], ...deliveryStatuses.map((word) => [formatQueryName(word), word])]);
  for (const word of deliveryStatuses) {
    const { text } = await t.visitor.get(`${list}?status=${formatQueryName(word)}`);
    expect([word, [...text.matchAll(/<a id="d-[0-9a-f-]{36}-([0-9a-f-]{36})"/g)].map(([, id]) => id)]).toEqual([
      word,
      [made[word]],
    ]);
    expect(listRows(text)).toEqual([expect.stringContaining(word)]);
  }
});

it('a failing webhook’s page names the cause of its last failure, and its chart shows what is retried and held', async () => {
  const t = await setup();
  const webhook = await insertWebhook(t, t.ada);
  const explanation = 'The receiver failed (5xx): look for the error in its log.';
  const eventId = await t.make.delivery({
    webhook,
    state: 'running',
    attempts: [{ status: 503, cause: 'answered_unavailable' }],
  });
  await t.owner.pool.query('update delivery_attempt set explanation = $1', [explanation]);
  await t.owner.pool.query('update receiver set failing_since = now() where webhook_id = $1', [webhook.id]);
  const path = `/o/${t.ada.orgId}/webhooks/${webhook.id}`;
  const { text } = await t.visitor.get(path);
  expect(plain(text)).toContain(`Last failure: 503 ${explanation} View delivery`);
  expect(text).toContain(`<a href="${path}/edit">Edit webhook</a>`);
  expect(text).toContain(`href="${path}/deliveries/${eventId}"`);
  expect(text).toContain('1 retrying.');
  expect(text).toContain('class="chart-failing"');
  await t.owner.pool.query(`update webhook set state = 'suspended', suspended_reason = 'failures' where id = $1`, [
    webhook.id,
  ]);
  const suspended = (await t.visitor.get(path)).text;
  expect(plain(suspended)).toContain(`Last failure: 503 ${explanation}`);
  expect(suspended).toContain('1 held.');
  expect(plain(suspended)).toContain('0 of 1 delivered, 1 held');
});

it('each result in the log has one word: on the page, in the filter, in the address and in the CSV; and each filter lists its own', async () => {
  const t = await setup();
  await t.owner.pool.query('delete from audit_entry');
  const of = (action: string, status: number | null, detail: Record<string, unknown> | null = null) => ({
    action,
    status,
    detail,
  });
  const webhookId = '01900000-0000-7000-8000-000000000001';
  const lines = {
    Succeeded: [of('api.getOrg', 200), of('api.getOrg', 304)],
    Denied: [of('api.getFirmRoster', 403), of('api.getOrg', 401), of('api.rate_limited', 429)],
    'Invalid request': [of('api.getFirmRoster', 400), of('api.getFirmRoster', 404)],
    Completed: [
      of('role.create', null),
      of('webhook.tested', null, { webhookId, delivered: true, eventType: 'seat.given' }),
      of('webhook.verified', null, { webhookId, result: 'verified' }),
      of('webhook.redelivered', null, { webhookId, state: 'done' }),
    ],
    Failed: [
      of('sign_in.failure', null, { step: 'totp' }),
      of('webhook.tested', null, { webhookId, delivered: false, eventType: 'seat.given', cause: 'connection_refused' }),
      of('webhook.verified', null, { webhookId, result: 'no_response' }),
      of('webhook.redelivered', null, { webhookId, state: 'ended' }),
    ],
  };
  expect(Object.keys(lines)).toEqual(results);
  const log = `/o/${t.ada.orgId}/audit-log`;
  for (const word of results)
    await writeEntries(
      t.owner,
      lines[word].map((line) => ({
        ...line,
        orgId: t.ada.orgId,
        code: (line.status ?? 0) >= 400 ? 'code' : null,
        at: new Date(),
      })),
    );
  const options = listOptions((await t.visitor.get(log)).text, 'result');
  expect(options).toEqual([['', 'Any'], ...results.map((word) => [formatQueryName(word), word])]);
  for (const word of results) {
    const filter = `?result=${formatQueryName(word)}`;
    // Each download is itself an action that completed.
    const rows = listRows((await t.visitor.get(log + filter)).text).filter((row) => !row.startsWith('Downloaded'));
    expect(rows).toEqual(lines[word].map(() => expect.stringMatching(new RegExp(` ${word} `))));
    const [, ...csv] = (await t.visitor.get(`${log}/csv${filter}`)).text.trim().split('\r\n');
    const own = csv.filter((line) => !line.includes('"audit_log.download"'));
    expect(own.map((line) => resultPattern.exec(line)?.[1])).toEqual(lines[word].map(() => word));
  }
  const rejected = (await t.visitor.get(`${log}?result=invalid_request`)).text;
  expect(rejected).toContain('Sent an invalid request for the roster of clients');
  expect(rejected).not.toContain('Was denied');
});
