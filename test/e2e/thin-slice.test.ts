import { describe, expect, it, vi } from 'vitest';
import { eventEnvelope } from '#domain/contract/events.ts';
import { verifyDelivery } from '#domain/webhooks/verification/verify.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTestWorker } from '#test/worker.ts';

const timeout = 60_000;

describe('an event', () => {
  it(
    'leads from a grant that starts to a signed post at the receiver, with one recorded attempt',
    async () => {
      const { database, owner, make } = await setupDatabase();
      const receiver = await startReceiver();
      const professional = await make.member();
      const webhook = await make.webhook({
        orgId: professional.orgId,
        url: `${receiver.url}/hooks/first`,
      });
      const { logLines } = await startTestWorker(database);

      const grant = await make.grant({ professional });

      await vi.waitFor(() => expect(receiver.received).toHaveLength(1), { timeout: 20_000 });
      const [post] = receiver.received;
      const body = eventEnvelope('client.started').parse(JSON.parse(String(post?.body)));
      expect(body).toMatchObject({
        organization: { id: professional.orgId },
        data: { grantId: grant.id, kind: 'attorney' },
      });
      expect(post?.headers).toMatchObject({
        'webhook-id': body.id,
        'webhook-endpoint': webhook.id,
        'webhook-attempt': '1',
        'webhook-sequence': '1',
      });
      const verification = verifyDelivery({
        headers: post?.headers ?? {},
        body: post?.body ?? Buffer.alloc(0),
        secrets: [webhook.secret],
      });
      expect(verification.checks.filter(({ ok }) => !ok)).toEqual([]);

      await vi.waitFor(
        async () => {
          const { rows } = await owner.pool.query('select state, attempts from delivery');
          expect(rows).toEqual([{ state: 'delivered', attempts: 1 }]);
        },
        { timeout: 30_000 },
      );
      const { rows } = await owner.pool.query('select number, status, cause, ends_schedule from delivery_attempt');
      expect(rows).toEqual([{ number: 1, status: 200, cause: 'accepted', ends_schedule: false }]);
      expect(logLines.join('')).not.toContain(webhook.secret);
    },
    timeout,
  );

  it(
    'is retried with the same id and bytes on the schedule until the receiver answers 2xx',
    async () => {
      const { database, owner, make } = await setupDatabase();
      const receiver = await startReceiver();
      const professional = await make.member();
      await make.webhook({ orgId: professional.orgId, url: receiver.url });
      receiver.respond = (response) => void response.writeHead(receiver.received.length < 3 ? 500 : 204).end();
      await startTestWorker(database, { DELIVERY_SCHEDULE: '200ms,300ms,5s' });

      await make.grant({ professional });

      await vi.waitFor(() => expect(receiver.received).toHaveLength(3), { timeout: 20_000 });
      expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
      expect(new Set(receiver.received.map(({ body }) => String(body))).size).toBe(1);
      expect(receiver.received.map(({ headers }) => headers['webhook-attempt'])).toEqual(['1', '2', '3']);
      await vi.waitFor(
        async () => {
          const { rows } = await owner.pool.query(
            'select d.state, d.attempts, r.failing_since from delivery d join receiver r using (organization_id, webhook_id)',
          );
          expect(rows).toEqual([{ state: 'delivered', attempts: 3, failing_since: null }]);
        },
        { timeout: 30_000 },
      );
    },
    timeout,
  );

  it(
    'is exhausted when the schedule ends, and every attempt is recorded',
    async () => {
      const { database, owner, make } = await setupDatabase();
      const receiver = await startReceiver();
      const professional = await make.member();
      await make.webhook({ orgId: professional.orgId, url: receiver.url });
      receiver.respond = (response) => void response.writeHead(500).end();
      await startTestWorker(database, { DELIVERY_SCHEDULE: '100ms,100ms' });

      await make.grant({ professional });

      await vi.waitFor(
        async () => {
          const { rows } = await owner.pool.query('select state, attempts from delivery');
          expect(rows).toEqual([{ state: 'exhausted', attempts: 3 }]);
        },
        { timeout: 20_000 },
      );
      const { rows } = await owner.pool.query(
        'select number, status, ends_schedule from delivery_attempt order by number',
      );
      expect(rows.map(({ ends_schedule }) => ends_schedule)).toEqual([false, false, true]);
    },
    timeout,
  );
});
