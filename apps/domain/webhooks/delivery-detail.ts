import { sql } from 'kysely';
import type { Queryable } from '../db/database.ts';
import type { WebhookRequest } from './access.ts';
import { type AttemptSummary, assertShown, deliveryColumns, noSuchDelivery } from './deliveries.ts';
import { type FoundDelivery, lastAttempt, nowColumns } from './search-deliveries.ts';

/** A delivery with the bytes that are sent, and its newest attempts, newest first. */
export interface DeliveryDetail extends FoundDelivery {
  /** As it is posted, UTF-8. */
  body: string;
  newestAttempts: (AttemptSummary & { response: Buffer | null })[];
  /** The number below which older attempts begin; null when there are none. */
  olderAttempts: number | null;
}

/** One attempt with everything that is recorded of it. */
export interface AttemptDetail extends AttemptSummary {
  type: string;
  /** The bytes that were posted, UTF-8. */
  body: string;
  /**
   * As they were sent, except Host, Content-Length and Connection; null when it was lost. A custom header has null for
   * its value, which is not recorded.
   */
  headers: Record<string, string | null> | null;
  /** At most the first 16 KiB of the response; null without one. */
  response: Buffer | null;
}

const attemptColumns = sql`
  a.number, api.utc(a.started_at) as "startedAt", api.utc(a.finished_at) as "finishedAt", a.status, a.cause,
    a.explanation,
  a.timings, host(a.peer_address) as "peerAddress", a.kept_bytes as "keptBytes",
  a.response_encoding as "responseEncoding", a.signed_with as "signedWith"`;

/**
 * Returns one delivery as it is now. A delivery that was sent again many times has many attempts,
 * so these come in pages.
 *
 * @param page - `before`: attempts below this number; null begins with the newest. `atMost` null:
 * all of them. `withResponses`: with the first 16 KiB of each response, which are null otherwise.
 * @throws WebhookError when the caller may not, or there is none.
 */
export async function getDeliveryDetail(
  db: Queryable,
  request: WebhookRequest & { eventId: string },
  page: { before: number | null; atMost: number | null; withResponses?: boolean },
): Promise<DeliveryDetail> {
  const { organizationId, webhookId, eventId } = request;
  await assertShown(db, request);
  const [delivery] = await db.query(sql<FoundDelivery & { body: string }>`
    select ${deliveryColumns}, ${nowColumns}, e.body
    from delivery d
    join event e on e.organization_id = d.organization_id and e.id = d.event_id
    ${lastAttempt}
    where d.organization_id = ${organizationId} and d.webhook_id = ${webhookId} and d.event_id = ${eventId}`);
  if (delivery === undefined) throw noSuchDelivery();
  const { before, atMost, withResponses = false } = page;
  const attempts = await db.query(sql<DeliveryDetail['newestAttempts'][number]>`
    select ${attemptColumns}, ${withResponses ? sql`a.response` : sql`null as response`} from delivery_attempt a
    where a.organization_id = ${organizationId} and a.webhook_id = ${webhookId} and a.event_id = ${eventId}
      and (${before}::integer is null or a.number < ${before}::integer)
    order by a.number desc
    limit ${atMost === null ? null : atMost + 1}`);
  const newestAttempts = attempts.slice(0, atMost ?? attempts.length);
  const olderAttempts = attempts.length > newestAttempts.length ? (newestAttempts.at(-1)?.number ?? null) : null;
  return { ...delivery, newestAttempts, olderAttempts };
}

/**
 * Returns one attempt, or null when the delivery has none with this number.
 *
 * @throws WebhookError when the caller may not, or the organization has no such webhook.
 */
export async function findAttempt(
  db: Queryable,
  request: WebhookRequest & { eventId: string; number: number },
): Promise<AttemptDetail | null> {
  const { organizationId, webhookId, eventId, number } = request;
  await assertShown(db, request);
  const rows = await db.query(sql<AttemptDetail>`
    select ${attemptColumns}, e.type, e.body, a.headers, a.response from delivery_attempt a
    join event e on e.organization_id = a.organization_id and e.id = a.event_id
    where a.organization_id = ${organizationId} and a.webhook_id = ${webhookId} and a.event_id = ${eventId}
      and a.number = ${number}`);
  return rows[0] ?? null;
}
