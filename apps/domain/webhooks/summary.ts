import { type RawBuilder, sql } from 'kysely';
import type { SuspendReason } from '../contract/choices.ts';
import { dayMs } from '../contract/durations.ts';
import { firstEventIdAt } from '../contract/events.ts';
import { isHolding, isOpen } from './deliveries.ts';
import { type HealthCounts, selectHealth } from './health.ts';
import { oldestRedeliverable } from './redeliverable.ts';
import type { SignatureResult } from './signature-result.ts';
import type { WebhookState } from './webhook.entity.ts';

/** A webhook. Times are UTC. */
export interface WebhookHead {
  id: string;
  organizationId: string;
  url: string;
  description: string;
  eventTypes: string[];
  /** Whether the events of one seat or grant are sent one after the other. */
  ordered: boolean;
  /** The most posts in a second, 1 to 100, as its owner set; null: no bound. */
  postsPerSecond: number | null;
  /** The names of its custom headers, in alphabetical order. Nothing returns their values. */
  headerNames: string[];
  state: WebhookState;
  /** Null unless it is suspended: its receiver accepted nothing, or it answered 410. */
  suspendedReason: SuspendReason | null;
  /** Since when each attempt failed; null when the last one was accepted, or none was made yet. */
  failingSince: string | null;
  /** Until when nothing is sent, because the receiver asked so with `Retry-After`; null for none. */
  retryAfterUntil: string | null;
  /** How many deliveries may be in progress, 1 to 10; fewer while its receiver fails or is slow. */
  concurrency: number;
  /** As last checked; both null when not checked since a change of URL or secret. */
  signatureResult: SignatureResult | null;
  signatureCheckedAt: string | null;
  createdAt: string;
  /** The cluster object that alone changes it; null when members do. */
  managedBy: string | null;
}

/**
 * What is counted of each webhook `w` in a list: columns after the webhook's own, each with a comma
 * before it, and what they are read from beside `w`. `Counts` is what a row gains.
 */
export interface WebhookCounts<Counts> {
  columns: RawBuilder<unknown>;
  source: RawBuilder<unknown>;
  /** Only for the compiler. */
  row?: Counts;
}

export const noCounts: WebhookCounts<object> = { columns: sql``, source: sql`` };

/** Deliveries by state: open ones, and settled ones for events of the last 30 days. */
interface DeliveryCounts {
  deliveries: Record<'waiting' | 'held' | 'delivered' | 'exhausted' | 'cancelled', number>;
}

/** Returns the counts for an operator, which take longer the more deliveries there are. */
export function completeCounts(now: Date): WebhookCounts<DeliveryCounts> {
  const recent = firstEventIdAt(oldestRedeliverable(now));
  return {
    columns: sql`,
      json_build_object('waiting', case when ${isHolding} then 0 else o.count end,
        'held', case when ${isHolding} then o.count else 0 end, 'delivered', s.delivered,
        'exhausted', s.exhausted, 'cancelled', s.cancelled) as deliveries`,
    source: sql`
      cross join lateral (
        select count(*) as count
        from delivery d
        where d.organization_id = w.organization_id and d.webhook_id = w.id and ${isOpen}
      ) o
      cross join lateral (
        select count(*) filter (where d.state = 'delivered') as delivered,
          count(*) filter (where d.state = 'exhausted') as exhausted,
          count(*) filter (where d.state = 'cancelled') as cancelled
        from delivery d
        where d.organization_id = w.organization_id and d.webhook_id = w.id and d.event_id >= ${recent}::uuid
      ) s`,
  };
}

/** Its number, and counts for a page, each bounded: they take as long with a million deliveries as with ten. */
interface PageCounts {
  /** Among the organization's webhooks, by which emails name it; null once it is deleted. */
  number: number | null;
  /** Of the events of the last 24 hours, the newest 500 at most. */
  day: HealthCounts;
  /** Open deliveries, counted up to `openCountedTo`. */
  waiting: number;
  held: number;
}

export type WebhookSummary = WebhookHead & PageCounts;

/** How far open deliveries are counted. */
export const openCountedTo = 10_000;

export function pageCounts(now: Date): WebhookCounts<PageCounts> {
  const yesterday = firstEventIdAt(new Date(now.getTime() - dayMs));
  return {
    columns: sql`, w.number, row_to_json(h) as day, ${countOpen('waiting')}, ${countOpen('held')}`,
    source: sql`cross join lateral (${selectHealth(sql`d.organization_id = w.organization_id and d.webhook_id = w.id
      and d.event_id >= ${yesterday}::uuid`)}) h`,
  };
}

const countOpen = (state: 'waiting' | 'held') => sql`(
  select count(*)::integer from (
    select from delivery d
    where d.organization_id = w.organization_id and d.webhook_id = w.id and ${isOpen}
      and ${state === 'held' ? isHolding : sql`not ${isHolding}`}
    limit ${openCountedTo}
  ) o) as ${sql.ref(state)}`;
