import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { sql } from 'kysely';
import type { EventType } from '../contract/events.ts';
import type { Database, Queryable, Transaction } from '../db/database.ts';
import { lockOrganization } from '../db/locks.ts';
import { assertMayManageWebhooks, lockLivingWebhook, recordWebhookEntry, type WebhookRequest } from './access.ts';
import { WebhookError } from './errors.ts';
import { testsPerMinute } from './limits.ts';

/** Example data of each type: ids that refer to nothing. */
const exampleData: Record<EventType, () => object> = {
  'client.started': () => ({ grantId: randomUUID(), kind: 'attorney' }),
  'client.ended': () => ({ grantId: randomUUID(), kind: 'attorney', reason: 'ended' }),
  'seat.given': () => ({ seatId: randomUUID(), grantId: randomUUID() }),
  'seat.ended': () => ({ seatId: randomUUID(), grantId: randomUUID(), reason: 'ended_by_organization' }),
  'webhook.failing': () => ({ webhookId: randomUUID(), failingSince: '2026-01-01T00:00:00.000Z' }),
  'webhook.suspended': () => ({
    webhookId: randomUUID(),
    suspendedAt: '2026-01-04T12:00:00.000Z',
    reason: 'failures',
  }),
  'key.expiring': () => ({ keyId: randomUUID(), keyPrefix: 'aln_us_0000', expiresAt: '2026-01-15T00:00:00.000Z' }),
};

/** Returns the id and body of a test event: a real envelope with `"test": true` and unused ids. */
export function buildTestEvent(type: EventType, organizationId: string, at: Date): { id: string; body: string } {
  const id = randomUUIDv7();
  const envelope = {
    id,
    type,
    createdAt: at.toISOString(),
    organization: { id: organizationId },
    data: exampleData[type](),
    test: true,
  };
  return { id, body: JSON.stringify(envelope) };
}

/**
 * Authorizes a test event, or the probe before a resume, and writes its audit entry. The post is
 * the caller's next step: it takes seconds, and no transaction stays open for it.
 *
 * @param requestedType - null: the first type that the webhook is subscribed to.
 *
 * @returns the type to send.
 *
 * @throws WebhookError when the caller may not, the webhook is deleted, it is not subscribed to
 * the type, or members of the organization have sent 20 within a minute.
 */
export function requestTest(
  database: Database,
  request: WebhookRequest,
  requestedType: string | null,
): Promise<EventType> {
  return requestPost(database, request, requestedType, 'webhook.test');
}

/**
 * Authorizes a signature check as `requestTest` does: nothing else ever sends the receiver a badly
 * signed event. The process that checks records the result.
 *
 * @returns the type to send.
 *
 * @throws WebhookError when the caller may not, the webhook is deleted, or members of the organization have sent 20
 * within a minute.
 */
export function requestSignatureCheck(database: Database, request: WebhookRequest): Promise<EventType> {
  return requestPost(database, request, null, 'webhook.verify');
}

function requestPost(
  database: Database,
  request: WebhookRequest,
  requestedType: string | null,
  action: string,
): Promise<EventType> {
  return database.change(async (tx) => {
    await assertMayManageWebhooks(tx, request);
    if (request.by !== 'orgctl') await lockOrganization(tx, request.organizationId);
    const { eventTypes } = await lockLivingWebhook(tx, request);
    const eventType = requestedType === null ? eventTypes[0] : eventTypes.find((type) => type === requestedType);
    if (eventType === undefined) {
      throw new WebhookError(
        'unknown_event_type',
        `The webhook is not subscribed to this type. It is subscribed to ${eventTypes.join(', ')}.`,
      );
    }
    if (request.by !== 'orgctl') await assertFewTests(tx, request);
    await recordWebhookEntry(tx, request, action, { eventType });
    return eventType as EventType;
  });
}

/**
 * Limits test events, of all webhooks of an organization together: each may wait for a receiver for as long as an
 * attempt. The caller holds the lock of the organization, so concurrent requests are counted one after the other.
 *
 * @throws WebhookError `too_many_tests`
 */
async function assertFewTests(tx: Transaction, { organizationId }: WebhookRequest): Promise<void> {
  const rows = await tx.query(sql<{ count: number }>`
    select count(*)::integer as count from audit_entry a
    where a.organization_id = ${organizationId} and a.action in ('webhook.test', 'webhook.verify') and a.status is null
      and a.at between statement_timestamp() - interval '1 minute' and statement_timestamp()`);
  if ((rows[0]?.count ?? 0) < testsPerMinute) return;
  throw new WebhookError(
    'too_many_tests',
    `Your organization can send ${testsPerMinute} test events and signature checks per minute. ` +
      'Wait a minute, and try again.',
  );
}

/** The outcome of a test event, which is no delivery, as its audit entry holds it. */
interface TestOutcome {
  eventType: string;
  eventId: string;
  delivered: boolean;
  /** HTTP status; null without a response. */
  status: number | null;
  cause: string;
}

/** Records the outcome of a test event that a person sent. */
export function recordTestOutcome(database: Database, request: WebhookRequest, outcome: TestOutcome): Promise<void> {
  return database.change((tx) => recordWebhookEntry(tx, request, 'webhook.tested', { ...outcome }));
}

/** The audit entries of test events that are searched for those of one webhook. */
const maxTestsScanned = 500;

/**
 * Lists the latest test events of a webhook, newest first. `at` is ISO 8601; `requestedBy` null: an
 * operator.
 *
 * @throws WebhookError when the caller may not.
 */
export async function listTestOutcomes(
  db: Queryable,
  request: WebhookRequest,
  atMost: number,
): Promise<(TestOutcome & { at: string; requestedBy: string | null })[]> {
  await assertMayManageWebhooks(db, request);
  const { organizationId, webhookId } = request;
  // JSON values, not casts of text: no row can fail the page.
  return db.query(sql<TestOutcome & { at: string; requestedBy: string | null }>`
    select to_json(a.at) #>> '{}' as at, coalesce(m.name, a.person_id) as "requestedBy",
      a.detail ->> 'eventType' as "eventType", a.detail ->> 'eventId' as "eventId",
      coalesce(a.detail -> 'delivered' = 'true', false) as delivered,
      case when jsonb_typeof(a.detail -> 'status') = 'number' then a.detail -> 'status' end as status,
      a.detail ->> 'cause' as cause
    from (
      select a.at, a.id, a.person_id, a.detail from audit_entry a
      where a.organization_id = ${organizationId} and a.action = 'webhook.tested' and a.status is null
      order by a.at desc, a.id desc
      limit ${sql.lit(maxTestsScanned)}
    ) a
    left join membership m on m.organization_id = ${organizationId} and m.person_id = a.person_id
    where a.detail ->> 'webhookId' = ${webhookId}
    order by a.at desc, a.id desc
    limit ${atMost}`);
}
