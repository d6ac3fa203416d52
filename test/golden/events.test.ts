/** Each event as a receiver gets them: headers, signatures and body. */
import { expect, it, vi } from 'vitest';
import { eventTypes } from '#domain/contract/events.ts';
import { verifyDelivery } from '#domain/webhooks/verification/verify.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTestWorker } from '#test/worker.ts';
import { createStable, goldenText } from './stable.ts';

/** Values that differ from post to post; the signature check proves that they are right. */
const signed: Record<string, RegExp> = {
  'service-signature': /^t=\d{10},v1=[0-9a-f]{64}$/,
  'webhook-signature': /^v1,[0-9A-Za-z+/]{43}=$/,
  'webhook-timestamp': /^\d{10}$/,
};

it('each event type is posted with unchanged headers, signatures and body', {
  timeout: 60_000,
}, async () => {
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  const { orgId } = professional;
  const { secret } = await make.webhook({ orgId, url: `${receiver.url}/hooks/golden`, eventTypes });
  const others = [await make.webhook({ orgId }), await make.webhook({ orgId })] as const;
  await startTestWorker(database);

  const posted = async (count: number) =>
    vi.waitFor(() => expect(receiver.received).toHaveLength(count), { timeout: 20_000 });
  const grant = await make.grant({ professional });
  await posted(1);
  await make.seat({ orgId: professional.orgId, grant });
  await posted(2);
  // One event at a time: `webhook-sequence` counts claims, and `seat.ended` is not claimed before `seat.given`
  // is settled, which is later than its post. With the end of access, `client.ended` could come first.
  await owner.pool.query(`update seat set end_reason = 'ended_by_organization', ended_at = now()`);
  await posted(3);
  await owner.pool.query(
    `update client_grant set status = 'ended', end_reason = 'moved', ends_at = now() where id = $1`,
    [grant.id],
  );
  await posted(4);
  const notices = [
    [`update receiver set failing_since = now() - interval '2 hours' where webhook_id = $1`, others[0].id],
    [`update webhook set state = 'suspended', suspended_reason = 'gone' where id = $1`, others[1].id],
    [
      `insert into api_key (organization_id, creator_id, fingerprint, pepper_version, hint, scopes, number, created_at,
         expires_at) select $1, $2, decode(repeat('00', 32), 'hex'), 1, 'aln_us_Q7m2…9zXk', '{org.read}', 1,
         now() - interval '1 year', now() + interval '13 days'`,
      orgId,
      professional.userId,
    ],
  ] as const;
  for (const [index, [statement, ...values]] of notices.entries()) {
    await owner.pool.query(statement, [...values]);
    await owner.pool.query('select record_notices(10)');
    await posted(5 + index);
  }

  const getEventType = (post: { body: Buffer }): string => JSON.parse(String(post.body)).type;
  expect(receiver.received.map(getEventType).toSorted()).toEqual(eventTypes.toSorted());
  const ordered = receiver.received.toSorted((one, other) => (getEventType(one) < getEventType(other) ? -1 : 1));
  const stable = createStable();
  const posts = ordered.map(({ headers, body, path }) => {
    const { checks } = verifyDelivery({ headers, body, secrets: [secret] });
    expect(checks.filter(({ ok }) => !ok)).toEqual([]);
    const shown = Object.entries(headers).map(([name, value]) => {
      const form = signed[name];
      if (form === undefined) return [name, value];
      expect(value).toMatch(form);
      return [name, String(form)];
    });
    return stable({ path, headers: Object.fromEntries(shown), body: String(body) });
  });
  await expect(goldenText(posts)).toMatchFileSnapshot('events.json');
});
