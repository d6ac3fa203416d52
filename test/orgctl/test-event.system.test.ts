/** `orgctl webhook test`, and the probe that precedes `resume`. */
import { describe, expect, it } from 'vitest';
import { eventEnvelope } from '#domain/contract/events.ts';
import { verifyDelivery } from '#domain/webhooks/verification/verify.ts';
import { setupOrgctl } from '#test/orgctl.ts';
import { startReceiver } from '#test/receiver.ts';
import { startTestWorker } from '#test/worker.ts';

const timeout = 90_000;

async function setupWebhook() {
  const t = await setupOrgctl();
  const receiver = await startReceiver();
  const organizationId = await t.make.organization();
  const webhook = await t.make.webhook({
    orgId: organizationId,
    url: receiver.url,
    eventTypes: ['seat.given', 'seat.ended'],
  });
  await startTestWorker(t.database);
  const on = (verb: string, ...args: string[]) => t.orgctl('webhook', verb, '--webhook', webhook.id, ...args, '--json');
  return { ...t, receiver, organizationId, webhook, on };
}

describe('a test event', () => {
  it('is signed like any other, is marked as a test, and leaves no delivery, attempt or sequence number', {
    timeout,
  }, async () => {
    const { owner, receiver, organizationId, webhook, on } = await setupWebhook();

    const sent = await on('test', '--type', 'seat.ended');

    expect(sent).toMatchObject({ code: 0, stderr: '' });
    const [post] = receiver.received;
    const body: unknown = JSON.parse(String(post?.body));
    expect(body).toMatchObject({
      ...eventEnvelope('seat.ended').parse(body),
      test: true,
      organization: { id: organizationId },
    });
    expect(sent.json()).toMatchObject({
      eventId: post?.headers['webhook-id'],
      delivered: true,
      status: 200,
      cause: 'accepted',
    });
    const delivery = { headers: post?.headers ?? {}, body: post?.body ?? Buffer.alloc(0), secrets: [webhook.secret] };
    expect(verifyDelivery(delivery).checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(post?.headers).not.toHaveProperty('webhook-sequence');
    const { rows } = await owner.pool.query(
      `select (select count(*)::int from event) + (select count(*)::int from delivery) + (select count(*)::int
        from delivery_attempt) as rows,
         (select next_sequence::int from receiver) as next, (select array_agg(action order by at, id)
           from audit_entry) as actions`,
    );
    expect(rows).toEqual([{ rows: 0, next: 1, actions: ['webhook.create', 'webhook.test'] }]);
  });

  it('shows the receiver’s error response, and is not sent for an event type without a subscription', {
    timeout,
  }, async () => {
    const { receiver, on } = await setupWebhook();
    receiver.respond = (response) => void response.writeHead(418).end();

    expect((await on('test')).json()).toMatchObject({ delivered: false, status: 418 });
    const rejected = await on('test', '--type', 'client.started');

    expect(rejected).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('seat.given, seat.ended') });
    expect(receiver.received).toHaveLength(1);
  });
});

describe('resuming a paused webhook', () => {
  it('waits for a signed probe that is accepted', { timeout }, async () => {
    const { owner, receiver, on } = await setupWebhook();
    await on('pause');
    receiver.respond = (response) => void response.writeHead(receiver.received.length < 2 ? 503 : 204).end();

    const rejected = await on('resume');
    expect(rejected).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('The receiver did not accept the test event'),
    });
    expect((await owner.pool.query('select state from webhook')).rows).toEqual([{ state: 'paused' }]);

    expect((await on('resume')).json()).toMatchObject({ state: 'active' });
    const { rows } = await owner.pool.query('select state, concurrency from webhook join receiver on webhook_id = id');
    expect(rows).toEqual([{ state: 'active', concurrency: 1 }]);
  });
});
