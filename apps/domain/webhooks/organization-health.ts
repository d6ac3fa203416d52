import { sql } from 'kysely';
import type { EventType } from '../contract/events.ts';
import type { Queryable } from '../db/database.ts';
import { assertMayManageWebhooks, type WebhooksRequest } from './access.ts';
import { deliveryState, type ShownState } from './deliveries.ts';
import { type HealthBucket, type HealthCounts, healthKeys, listBuckets, selectHealth } from './health.ts';

/**
 * Returns the outcomes of all webhooks' events by the hour (24), oldest first. Of each webhook and
 * hour, at most the newest 500 count.
 *
 * @throws WebhookError when the caller may not.
 */
export async function listOrganizationHealth(
  db: Queryable,
  request: WebhooksRequest,
  now: Date,
): Promise<HealthBucket[]> {
  await assertMayManageWebhooks(db, request);
  const buckets = listBuckets('24h', now);
  const rows = await db.query(sql<HealthCounts>`
    select ${sums} from ${buckets.source}
    left join lateral (
      select c.* from webhook w
      cross join lateral (${selectHealth(sql`d.organization_id = w.organization_id and d.webhook_id = w.id
        and d.event_id >= b.from_id and d.event_id < b.until_id`)}) c
      where w.organization_id = ${request.organizationId} and w.state <> 'deleted'
    ) c on true
    group by b.position
    order by b.position`);
  return buckets.withCounts(rows);
}

const sums = sql.raw(
  [
    ...healthKeys.map((key) => `coalesce(sum(c."${key}"), 0)::integer as "${key}"`),
    'coalesce(bool_or(c."isCapped"), false) as "isCapped"',
  ].join(', '),
);

export interface RecentFailure {
  webhookId: string;
  url: string;
  description: string;
  eventId: string;
  type: EventType;
  state: ShownState;
  attempts: number;
  /** ISO text, when the attempt started. */
  at: string;
  /** The HTTP status; null when there was no response. */
  status: number | null;
  cause: string;
  explanation: string | null;
}

/** How many of the newest attempts of each webhook are checked. */
const maxAttemptsScanned = 100;

/**
 * Lists deliveries whose last attempt failed, the newest attempt first, among the newest attempts
 * of each webhook, or of the one that is named.
 *
 * @throws WebhookError when the caller may not.
 */
export async function listRecentFailures(
  db: Queryable,
  request: WebhooksRequest & { webhookId?: string },
  atMost: number,
): Promise<RecentFailure[]> {
  await assertMayManageWebhooks(db, request);
  const isWanted = request.webhookId ? sql`w.id = ${request.webhookId}` : sql`w.state <> 'deleted'`;
  return db.query(sql<RecentFailure>`
    select d.webhook_id as "webhookId", w.url, w.description, d.event_id as "eventId", e.type,
      ${deliveryState} as state, d.attempts,
      api.utc(a.started_at) as at, a.status, a.cause, a.explanation
    from webhook w
    cross join lateral (
      select a.* from delivery_attempt a
      where a.organization_id = w.organization_id and a.webhook_id = w.id and a.number > 0
      order by a.started_at desc
      limit ${sql.lit(maxAttemptsScanned)}
    ) a
    join delivery d on d.organization_id = a.organization_id and d.webhook_id = a.webhook_id
      and d.event_id = a.event_id and d.attempts = a.number
    join event e on e.organization_id = d.organization_id and e.id = d.event_id
    where w.organization_id = ${request.organizationId} and ${isWanted} and d.state <> 'delivered'
      and a.finished_at is not null and (a.status is null or a.status not between 200 and 299)
    order by a.started_at desc, a.event_id
    limit ${atMost}`);
}
