/** `orgctl webhook verify`: whether a receiver verifies signatures. */
import type { DestinationStream } from 'pino';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createTestActivities } from '#delivery/send-test.ts';
import { eventEnvelope } from '#domain/contract/events.ts';
import { getCauseProperties } from '#domain/webhooks/causes.ts';
import { rotateSecret } from '#domain/webhooks/rotate.ts';
import { verifyDelivery } from '#domain/webhooks/verification/verify.ts';
import { createLog } from '#runtime/log.ts';
import type { MadeWebhook } from '#test/make.ts';
import { setupOrgctl } from '#test/orgctl.ts';
import { rejectedPost } from '#test/post-results.ts';
import { type Received, startReceiver } from '#test/receiver.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { allowSockets } from '#test/socket-guard.ts';
import { openAs } from '#test/webhook-rows.ts';
import { startTestWorker } from '#test/worker.ts';
import type { SignatureCheck } from '#workflows/send-test/types.ts';
import { startReceiver as startSampleReceiver } from '../../apps/receiver/app.ts';
import { readConfig as readReceiverConfig } from '../../apps/receiver/config.ts';

const timeout = 90_000;
const silence = { write: () => {} } as DestinationStream;

/**
 * An installation with a worker; `check` runs the command for a webhook, and `stored` is the stored
 * result.
 */
async function setupCheck() {
  const t = await setupOrgctl();
  const receiver = await startReceiver();
  const orgId = await t.make.organization();
  await startTestWorker(t.database);
  const call = (verb: string, { id }: MadeWebhook, ...args: string[]) =>
    t.orgctl('webhook', verb, '--webhook', id, ...args, '--json');
  return {
    ...t,
    receiver,
    orgId,
    call,
    webhookAt: (url: string) => t.make.webhook({ orgId, url, eventTypes: ['seat.given', 'seat.ended'] }),
    check: async (webhook: MadeWebhook) => (await call('verify', webhook)).json<SignatureCheck>(),
    async stored({ id }: MadeWebhook) {
      const { rows } = await t.owner.pool.query(
        'select signature_result as result, signature_checked_at > now() - interval $$1 minute$$ as ' +
          'fresh from webhook where id = $1',
        [id],
      );
      return rows[0] as { result: string | null; fresh: boolean | null };
    },
  };
}

/** Returns which of the two signature forms of a post a public library accepts. */
function formsAccepted({ headers, body }: Received, secret: string): string[] {
  const libraries: [string, () => unknown][] = [
    ['service', () => Stripe.webhooks.constructEvent(body, String(headers['service-signature']), secret)],
    ['standard', () => new Webhook(secret).verify(body, headers as Record<string, string>)],
  ];
  return libraries.flatMap(([form, verify]) => {
    try {
      verify();
      return [form];
    } catch {
      return [];
    }
  });
}

describe('the signature check of a receiver', () => {
  it('sends a correctly and a badly signed test event in both forms, identical otherwise, outside of ledger and sequence', {
    timeout,
  }, async () => {
    const { receiver, webhookAt, check, stored, owner, orgId } = await setupCheck();
    const webhook = await webhookAt(receiver.url);
    await rotateSecret(owner, { organizationId: orgId, webhookId: webhook.id, by: 'orgctl' }, testSealingKeys);
    receiver.respond = (response, post) =>
      void response.writeHead(formsAccepted(post, webhook.secret).length > 0 ? 204 : 400).end();

    const checked = await check(webhook);

    expect(checked).toMatchObject({
      result: 'verified',
      unrecorded: null,
      good: { delivered: true, status: 204 },
      bad: { delivered: false, status: 400 },
    });
    const [good, bad] = receiver.received as [Received, Received];
    expect(receiver.received).toHaveLength(2);
    expect([formsAccepted(good, webhook.secret), formsAccepted(bad, webhook.secret)]).toEqual([
      ['service', 'standard'],
      [],
    ]);
    const failed = verifyDelivery({ ...bad, secrets: [webhook.secret] }).checks.filter(({ ok }) => !ok);
    expect(failed.map(({ name }) => name)).toEqual(['service_signature', 'standard_signature']);
    const shapes = receiver.received.map(({ headers, body }) => {
      const event = JSON.parse(String(body));
      expect(event).toEqual({ ...eventEnvelope('seat.given').parse(event), test: true });
      expect(headers['webhook-id']).toBe(event.id);
      return {
        names: Object.keys(headers),
        lengths: ['service-signature', 'webhook-signature'].map((name) => String(headers[name]).length),
        bytes: body.length,
      };
    });
    expect(shapes[1]).toEqual(shapes[0]);
    expect(shapes[0]?.names).not.toContain('webhook-sequence');
    expect(String(bad.headers['webhook-signature']).split(' ')).toHaveLength(2); // one per signing secret
    expect(bad.headers['webhook-id']).not.toBe(good.headers['webhook-id']);

    expect(await stored(webhook)).toEqual({ result: 'verified', fresh: true });
    const { rows } = await owner.pool.query(
      `select (select count(*)::int from event) + (select count(*)::int from delivery) + (select count(*)::int
        from delivery_attempt) as rows,
         (select next_sequence::int from receiver) as next`,
    );
    expect(rows).toEqual([{ rows: 0, next: 1 }]);
    const entries = await owner.pool.query('select action, detail from audit_entry order by at, id');
    expect(entries.rows.slice(2)).toEqual([
      { action: 'webhook.verify', detail: { webhookId: webhook.id, eventType: 'seat.given' } },
      { action: 'webhook.verified', detail: { webhookId: webhook.id, result: 'verified' } },
    ]);
  });

  it('finds that the sample receiver verifies, shows it with the webhook, and resets it when URL or secret change', {
    timeout,
  }, async () => {
    const { webhookAt, check, call, stored } = await setupCheck();
    // its URL comes with the receiver, which needs the secret first
    const webhook = await webhookAt('http://127.0.0.1:9/');
    const config = readReceiverConfig({
      PORT: '0',
      RECEIVER_SECRETS: JSON.stringify({ ours: [webhook.secret] }),
    });
    const log = createLog({ level: 'silent', name: 'receiver', region: 'us', destination: silence });
    const sample = await startSampleReceiver(config, log);
    onTestFinished(() => sample.stop());
    allowSockets('receivers', sample.url);
    const url = `${sample.url}/hooks/ours`;
    await call('change', webhook, '--url', url);
    expect((await call('show', webhook)).json()).toMatchObject({ signatureResult: null, signatureCheckedAt: null });

    expect(await check(webhook)).toMatchObject({ result: 'verified', bad: { status: 400 } });
    expect((await call('show', webhook)).json()).toMatchObject({
      signatureResult: 'verified',
      signatureCheckedAt: expect.stringMatching(/Z$/),
    });
    await call('change', webhook, '--description', 'the same receiver', '--url', url);
    expect(await stored(webhook)).toMatchObject({ result: 'verified' });
    await call('rotate', webhook, '--overlap', '1h');
    expect(await stored(webhook)).toEqual({ result: null, fresh: null });
    expect(await check(webhook)).toMatchObject({ result: 'verified' }); // with the older secret, which signs too
    await call('change', webhook, '--url', `${url}?moved`);
    expect(await stored(webhook)).toEqual({ result: null, fresh: null });
  });

  it('distinguishes a receiver that accepts everything, one that rejects everything, and one that does not answer', {
    timeout,
  }, async () => {
    const { receiver, webhookAt, check, stored } = await setupCheck();
    const webhook = await webhookAt(receiver.url);
    expect(await check(webhook)).toMatchObject({
      result: 'accepts_bad_signatures',
      bad: { delivered: true, status: 200 },
      explanation: expect.stringContaining('Verify the signature'),
    });
    expect(await stored(webhook)).toEqual({ result: 'accepts_bad_signatures', fresh: true });

    receiver.received.length = 0;
    receiver.respond = (response) => void response.writeHead(401).end();
    expect(await check(webhook)).toMatchObject({
      result: 'rejects_good_signatures',
      good: { status: 401 },
      bad: null,
    });
    expect(receiver.received).toHaveLength(1);
    expect(await stored(webhook)).toEqual({ result: 'rejects_good_signatures', fresh: true });

    receiver.received.length = 0;
    receiver.respond = (response) =>
      void (receiver.received.length === 1 ? response.writeHead(204).end() : response.socket?.destroy());
    expect(await check(webhook)).toMatchObject({ result: 'no_response', good: { status: 204 }, bad: { status: null } });
    const silent = await webhookAt('http://127.0.0.1:9/');
    expect(await check(silent)).toMatchObject({ result: 'no_response', good: { status: null }, bad: null });
    expect(await stored(silent)).toEqual({ result: 'no_response', fresh: true });
  });

  it.each(['url', 'secret'])('keeps no result when the %s changed meanwhile', { timeout }, async (what) => {
    const { receiver, webhookAt, call, stored, owner, orgId } = await setupCheck();
    const webhook = await webhookAt(receiver.url);
    const change = () =>
      what === 'url'
        ? owner.pool.query(`update webhook set url = 'https://elsewhere.example/' where id = $1`, [webhook.id])
        : rotateSecret(owner, { organizationId: orgId, webhookId: webhook.id, by: 'orgctl' }, testSealingKeys);
    receiver.respond = (response) => void change().then(() => response.writeHead(204).end());

    const called = await call('verify', webhook);

    expect(called.json()).toMatchObject({ unrecorded: 'changed' });
    expect(called.stderr).toContain('Check again');
    expect(await stored(webhook)).toEqual({ result: null, fresh: null });
    const { rows } = await owner.pool.query(`select 1 from audit_entry where action = 'webhook.verified'`);
    expect(rows).toEqual([]);
  });

  it('waits for a rotation that locks the webhook, and then keeps no result', { timeout }, async () => {
    const { receiver, webhookAt, call, stored, owner } = await setupCheck();
    const webhook = await webhookAt(receiver.url);
    const holder = await owner.pool.connect();
    receiver.respond = async (response) => {
      if (receiver.received.length === 2) {
        await holder.query('begin; select from webhook for update');
        await holder.query(
          `update webhook_secret set valid_until = now() + interval '1 hour';
           insert into webhook_secret (organization_id, webhook_id, sealed) select organization_id, id, 'x'
             from webhook`,
        );
      }
      response.writeHead(204).end();
    };
    try {
      const calling = call('verify', webhook);
      await vi.waitFor(
        async () => {
          const { rows } = await owner.pool.query(
            `select from pg_stat_activity where datname = current_database() and application_name = 'org-api-worker'
              and wait_event_type = 'Lock'`,
          );
          expect(rows.length).toBeGreaterThan(0);
        },
        { timeout: 30_000, interval: 50 },
      );
      await holder.query('commit');
      expect((await calling).json()).toMatchObject({ unrecorded: 'changed' });
      expect(await stored(webhook)).toEqual({ result: null, fresh: null });
    } finally {
      holder.release();
    }
  });
});

it('a check that an internal error stopped leaves the earlier result unchanged', {
  timeout,
}, async () => {
  const { database, owner, make } = await setupDatabase();
  const webhook = await make.webhook();
  await owner.pool.query(`update webhook set signature_result = 'verified', signature_checked_at = now()`);
  const worker = await openAs(database.urls.worker, 1);
  const { checkSignatures } = createTestActivities({
    database: worker,
    sign: () => ({}),
    unsealCustomHeaders: () => ({}),
    // The outcome of a post in a process without free descriptors is tested in
    // test/delivery/post/internal-error.test.ts.
    post: async () => ({
      ...rejectedPost,
      ...getCauseProperties('sockets_exhausted'),
      status: null,
      cause: 'sockets_exhausted',
    }),
    onInternalError: () => {},
  });
  const { id: webhookId, orgId: organizationId } = webhook;

  const checked = await checkSignatures({ organizationId, webhookId, eventType: 'client.started' });

  expect(checked).toMatchObject({ result: 'no_response', unrecorded: 'internal_error', bad: null });
  const { rows } = await owner.pool.query('select signature_result as result from webhook');
  expect(rows).toEqual([{ result: 'verified' }]);
});

describe('a badly signed test event', () => {
  it('is sent by the signature check only: a test, and the probe before a resume, are signed correctly', {
    timeout,
  }, async () => {
    const { receiver, webhookAt, call } = await setupCheck();
    const webhook = await webhookAt(receiver.url);
    await call('test', webhook);
    await call('pause', webhook);
    await call('resume', webhook);
    expect(receiver.received.map((post) => formsAccepted(post, webhook.secret))).toEqual([
      ['service', 'standard'],
      ['service', 'standard'],
    ]);
  });
});
