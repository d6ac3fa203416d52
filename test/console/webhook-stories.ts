import { firstEventIdAt } from '#domain/contract/events.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import type { CustomHeader } from '#domain/webhooks/seal.ts';
import type { MadeWebhook } from '#test/make.ts';
import { testAllowList, testSealingKeys } from '#test/secrets.ts';
import type { ConsoleInstallation, Enrolled } from './setup.ts';

const minuteMs = 60_000;

/**
 * Content of a receiver's response that must not affect a page: markup, a control character, a
 * right-to-left override, a zero-width space, half a surrogate pair, and a long line.
 */
export const hostileResponse = Buffer.concat([
  Buffer.from(
    `<script>document.title = "taken over"</script><img src=x onerror="document.title = 'taken over'">` +
      `\u0007\u202Edetpecca\u200B\n${'long'.repeat(200)}\r\n`,
  ),
  Buffer.from([0xff, 0xe2, 0x82]),
]);

/** A webhook of the person's organization; its secret is sealed as the console's are. */
export async function insertWebhook(
  t: ConsoleInstallation,
  { orgId }: Pick<Enrolled, 'orgId'>,
  fields: { url?: string; description?: string; postsPerSecond?: number; headers?: readonly CustomHeader[] } = {},
): Promise<MadeWebhook> {
  const fixed = { organizationId: orgId, by: 'orgctl', allowSameUrl: true } as const;
  const url = 'https://hooks.example.com/events';
  const eventTypes = ['client.started', 'client.ended', 'seat.given'] as const;
  const input = { url, description: 'Case management', eventTypes, ...fields, ...fixed };
  const made = await createWebhook(t.owner, input, { allow: testAllowList, sealingKeys: testSealingKeys });
  return { orgId, ...made };
}

/**
 * Records for every attempt of a delivery what a worker records: headers, timings, the receiver's
 * body.
 */
export async function fillAttempts(
  t: ConsoleInstallation,
  eventId: string,
  fields: { response?: Buffer; explanation?: string } = {},
): Promise<void> {
  const {
    response = Buffer.from('no room'),
    explanation = 'The receiver failed (5xx): look for the error in its log.',
  } = fields;
  // All differ: an overloaded receiver is slow, and one that accepts is not, over a kept
  // connection.
  const [failed, accepted] = [
    { dns: 34, connect: 87, tls: 142, firstByte: 1_906, total: 2_171 },
    { dns: 2, connect: 19, tls: 41, firstByte: 118, total: 184 },
  ];
  const headers = {
    'Service-Signature': `t=1795000000,v1=${'0a'.repeat(32)}`,
    'webhook-id': eventId,
    'webhook-timestamp': '1795000000',
    'webhook-signature': `v1,${Buffer.alloc(32, 7).toString('base64')}`,
    'Content-Type': 'application/json',
    'User-Agent': 'org-api-webhooks/1.0',
    'webhook-attempt': '1',
  };
  await t.owner.pool.query(
    `update delivery_attempt set headers = $2, timings = case when status = 200 then $7::jsonb
      else $3::jsonb end, response = $4, kept_bytes = $5, explanation = case when status = 200
        then 'The receiver accepted the event.' else $6 end, peer_address = '203.0.113.9',
       signed_with = array[new_id()]
     where event_id = $1 and finished_at is not null`,
    [
      eventId,
      JSON.stringify(headers),
      JSON.stringify(failed),
      response,
      response.length,
      explanation,
      JSON.stringify(accepted),
    ],
  );
}

/** One delivery in each state, with realistic attempts; ids by state. */
export async function makeDeliveries(t: ConsoleInstallation, webhook: MadeWebhook) {
  const ago = (minutes: number) => new Date(Date.now() - minutes * minuteMs);
  const failed = { status: 503, cause: 'answered_unavailable' };
  const delivered = await t.make.delivery({
    webhook,
    state: 'delivered',
    createdAt: ago(180),
    settledAt: ago(179),
    type: 'client.ended',
    attempts: [
      { ...failed, startedAt: ago(180) },
      { status: 200, cause: 'accepted', startedAt: ago(179) },
    ],
  });
  const exhausted = await t.make.delivery({
    webhook,
    state: 'exhausted',
    createdAt: ago(75 * 60),
    settledAt: ago(90),
    type: 'seat.given',
    attempts: [
      { ...failed, startedAt: ago(75 * 60) },
      { ...failed, startedAt: ago(90), endsSchedule: true },
    ],
  });
  const waiting = await t.make.delivery({
    webhook,
    createdAt: ago(20),
    dueAt: new Date(Date.now() + 12 * minuteMs),
    state: 'running',
    attempts: [
      { ...failed, startedAt: ago(20) },
      { status: null, cause: 'connection_timeout', startedAt: ago(4) },
    ],
  });
  for (const eventId of [delivered, exhausted, waiting]) await fillAttempts(t, eventId);
  return { delivered, exhausted, waiting };
}

/**
 * Many settled deliveries of consecutive seconds before now, without attempts; every `failsEvery`th
 * is exhausted.
 */
export async function insertDeliveries(
  t: ConsoleInstallation,
  { id: webhookId, orgId }: Pick<MadeWebhook, 'id' | 'orgId'>,
  { count, failsEvery = 50, type = 'client.started' }: { count: number; failsEvery?: number; type?: string },
): Promise<void> {
  // Ids with the time of their events, as the database generates them.
  const ids = Array.from({ length: count }, (_, index) => {
    const at = new Date(Date.now() - (count - index) * 1_000);
    return firstEventIdAt(new Date(at.getTime() + 1_000)).slice(0, -12) + String(index).padStart(12, '0');
  });
  await t.owner.pool.query(
    `with made as (
       select id, now() - make_interval(secs => $4 - n) as at, n % $5 = 0 as fails
         from unnest($3::uuid[]) with ordinality as m (id, n)
     ), event as (
       insert into event (organization_id, id, type, created_at, body, delivery_count)
         select $1, m.id, $6, m.at, format('{"id":"%s"}', m.id), 1 from made m
     )
     insert into delivery (organization_id, webhook_id, event_id, state, attempts, created_at, settled_at)
     select $1, $2, m.id, case when m.fails then 'exhausted' else 'delivered' end, 1, m.at, m.at from made m`,
    [orgId, webhookId, ids, count, failsEvery, type],
  );
}
