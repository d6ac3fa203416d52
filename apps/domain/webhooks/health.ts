import { type RawBuilder, sql } from 'kysely';
import { dayMs, hourMs } from '../contract/durations.ts';
import { firstEventIdAt } from '../contract/events.ts';
import type { Queryable } from '../db/database.ts';
import type { WebhookRequest } from './access.ts';
import { assertShown, isHeld, isOpen } from './deliveries.ts';

/** The outcomes of the events of one period, as of now. */
export interface HealthCounts {
  /** Delivered by the first attempt, also when it was redelivered later. */
  atOnce: number;
  /** Delivered by a later attempt. */
  afterRetries: number;
  /** Waiting before its first attempt has ended. */
  pending: number;
  /** Waiting after an attempt, which was accepted only if it is redelivered now. */
  retrying: number;
  /** Of a paused or suspended webhook. */
  held: number;
  /** Exhausted. */
  failed: number;
  cancelled: number;
  /** Whether there may be more than were counted; then these are the newest. */
  isCapped: boolean;
}

/** The counts by name, in the order of charts. */
export const healthKeys = [
  'atOnce',
  'afterRetries',
  'pending',
  'retrying',
  'held',
  'failed',
  'cancelled',
] as const satisfies readonly (keyof HealthCounts)[];

export type HealthKey = (typeof healthKeys)[number];

/** One bar of the chart; `from` is ISO text. */
export interface HealthBucket extends HealthCounts {
  from: string;
}

/** The most deliveries of a bar that are counted, so that any volume takes the same time. */
export const maxHealthDeliveries = 500;

/** The ranges of the chart: the number and length of the bars, and both in words. */
export const healthSpans = {
  '1h': { label: '1 hour', each: '5 minutes', count: 12, lengthMs: hourMs / 12 },
  '24h': { label: '24 hours', each: 'hour', count: 24, lengthMs: hourMs },
  '7d': { label: '7 days', each: '6 hours', count: 28, lengthMs: 6 * hourMs },
  '30d': { label: '30 days', each: 'day', count: 30, lengthMs: dayMs },
  '90d': { label: '90 days', each: 'day', count: 90, lengthMs: dayMs },
} as const;

export type HealthSpan = keyof typeof healthSpans;

/**
 * Returns a webhook's health in the bars of a range, oldest first, the current one last. Bars begin
 * at whole units of UTC and hold the events that occurred in them.
 *
 * @throws WebhookError when the caller may not, or the organization has no such webhook.
 */
export async function listHealth(
  db: Queryable,
  request: WebhookRequest,
  span: HealthSpan,
  now: Date,
): Promise<HealthBucket[]> {
  const { organizationId, webhookId } = request;
  await assertShown(db, request);
  const buckets = listBuckets(span, now);
  const rows = await db.query(sql<HealthCounts>`
    select c.* from ${buckets.source}
    cross join lateral (${selectHealth(sql`d.organization_id = ${organizationId} and d.webhook_id = ${webhookId}
      and d.event_id >= b.from_id and d.event_id < b.until_id`)}) c
    order by b.position`);
  return buckets.withCounts(rows);
}

/** Returns the bars of a chart, oldest first. `source`: ids, `b (from_id, until_id, position)`. */
export function listBuckets(span: HealthSpan, now: Date) {
  const { count, lengthMs } = healthSpans[span];
  const last = Math.floor(now.getTime() / lengthMs) * lengthMs;
  const begins = Array.from({ length: count + 1 }, (_, index) => new Date(last - (count - 1 - index) * lengthMs));
  const ids = begins.map(firstEventIdAt);
  return {
    source: sql`unnest(${ids.slice(0, -1)}::uuid[], ${ids.slice(1)}::uuid[])
      with ordinality as b (from_id, until_id, position)`,
    withCounts: (rows: readonly HealthCounts[]): HealthBucket[] =>
      rows.map((counts, index) => ({ from: (begins[index] ?? now).toISOString(), ...counts })),
  };
}

/**
 * Matches a delivered `d` whose first attempt was accepted. Reads attempts of those that may have
 * been redelivered: a redelivery is another run.
 */
const isFirstAccepted = sql`(d.attempts <= 1 or d.run > 1 and exists (
  select from delivery_attempt a
  where a.organization_id = d.organization_id and a.webhook_id = d.webhook_id and a.event_id = d.event_id
    and a.number = 1 and a.status between 200 and 299))`;

/** Matches a `d` of which an attempt has ended; a further one may be in progress. */
const wasAttempted = sql`d.attempts > 0`;

/** Selects the counts of the newest deliveries `d` that match, at most `maxHealthDeliveries`. */
export const selectHealth = (matching: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  select count(*) filter (where d.state = 'delivered' and ${isFirstAccepted})::integer as "atOnce",
  count(*) filter (where d.state = 'delivered' and not ${isFirstAccepted})::integer as "afterRetries",
  count(*) filter (where ${isOpen} and not ${isHeld} and not ${wasAttempted})::integer as pending,
  count(*) filter (where ${isOpen} and not ${isHeld} and ${wasAttempted})::integer as retrying,
  count(*) filter (where ${isOpen} and ${isHeld})::integer as held,
  count(*) filter (where d.state = 'exhausted')::integer as failed,
  count(*) filter (where d.state = 'cancelled')::integer as cancelled,
  count(*) = ${sql.lit(maxHealthDeliveries)} as "isCapped"
  from (
    select d.organization_id, d.webhook_id, d.event_id, d.state, d.attempts, d.run from delivery d
    where ${matching} order by d.event_id desc limit ${sql.lit(maxHealthDeliveries)}
  ) d`;

/** Returns how many events the counts cover. */
export const sumCounts = (counts: HealthCounts): number => healthKeys.reduce((total, key) => total + counts[key], 0);
