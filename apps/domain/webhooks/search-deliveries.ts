import type { EntityManager } from '@mikro-orm/postgresql';
import type { EventType } from '../contract/events.ts';
import { runStatement, sql } from '../db/statement.ts';
import type { WebhookRequest } from './access.ts';
import {
  assertShown,
  type DeliveryRow,
  type DeliveryState,
  deliveryColumns,
  isInState,
  nextAttemptAt,
} from './deliveries.ts';
import { firstEventIdAt } from './event-id.ts';

/**
 * Which deliveries of a webhook are wanted; null: all. `from` to before `to`, by when the event
 * happened.
 */
export interface DeliveryFilter {
  state: DeliveryState | null;
  type: EventType | null;
  eventId: string | null;
  from: Date | null;
  to: Date | null;
}

/** A delivery in a list: what it is at now, by PostgreSQL's clock. */
export interface FoundDelivery extends DeliveryRow {
  /** Milliseconds until its next attempt is due, 0 when it is; null unless it is waiting. */
  dueInMs: number | null;
  /** Whether an attempt is under way. */
  isAttempting: boolean;
  /**
   * Of the last attempt; null before the first, while one is under way, and (`lastStatus`) when no
   * status came.
   */
  lastStatus: number | null;
  lastCause: string | null;
}

export interface FoundDeliveries {
  deliveries: FoundDelivery[];
  /** Go on below this event; null when nothing older matches. */
  older: string | null;
  /**
   * Whether it stopped because it had looked at enough, not because the page was full: there may be
   * more, or none.
   */
  hasStopped: boolean;
}

/** How many deliveries a page looks at. */
export const searchLooksAt = 2_000;

/**
 * A page of a webhook's deliveries, newest event first. It looks at a bounded number of rows, so it
 * takes no longer with a million deliveries of which none match. The states that are rare (open,
 * failed, cancelled) have an index of their own, and are found however many others there are.
 *
 * @param before - continues below this event; null begins with the newest.
 * @throws WebhookRefused when the caller may not, or the organization has no such webhook.
 */
export async function searchDeliveries(
  em: EntityManager,
  request: WebhookRequest,
  filter: DeliveryFilter,
  page: { before: string | null; atMost: number; scanLimit?: number },
): Promise<FoundDeliveries> {
  const { organizationId, webhookId } = request;
  const { before, atMost } = page;
  const fork = em.fork();
  await assertShown(fork, request);
  const { state, type, eventId, from, to } = filter;
  const inState = isInState(state);
  const isIndexed = state !== null && state !== 'delivered';
  // Where the index alone finds what is wanted, a page and one more is all there is to look at.
  const isSifted = type !== null || from !== null || to !== null || state === 'delivered';
  const scanLimit = isSifted ? (page.scanLimit ?? searchLooksAt) : atMost + 1;
  const rows = await runStatement<FoundDelivery & { seen: number; lastSeen: string }>(
    fork,
    sql`
    with seen as materialized (
      select d.organization_id, d.webhook_id, d.event_id, d.state, d.created_at from delivery d
      where d.organization_id = ${organizationId} and d.webhook_id = ${webhookId} and ${isIndexed ? inState : sql`true`}
        and (${before}::uuid is null or d.event_id < ${before}::uuid)
        and (${eventId}::uuid is null or d.event_id = ${eventId}::uuid)
        and (${idAt(from)}::uuid is null or d.event_id >= ${idAt(from)}::uuid)
        and (${idAt(to, 2_000)}::uuid is null or d.event_id < ${idAt(to, 2_000)}::uuid)
      order by d.event_id desc
      limit ${scanLimit}
    ), found as (
      select d.event_id from seen d
      where ${inState}
        and (${from?.toISOString() ?? null}::timestamptz is null
          or d.created_at >= ${from?.toISOString() ?? null}::timestamptz)
        and (${to?.toISOString() ?? null}::timestamptz is null
          or d.created_at < ${to?.toISOString() ?? null}::timestamptz)
        and (${type}::text is null or exists (
          select from event e where e.organization_id = ${organizationId} and e.id = d.event_id and e.type = ${type}))
      order by d.event_id desc
      limit ${atMost + 1}
    ), looked as (
      select count(*)::integer as seen, (select s.event_id from seen s order by s.event_id limit 1) as "lastSeen"
        from seen
    )
    select l.seen, l."lastSeen", p.* from looked l left join lateral (
      select ${deliveryColumns}, ${nowColumns}
      from found f
      join delivery d on d.organization_id = ${organizationId} and d.webhook_id = ${webhookId}
        and d.event_id = f.event_id
      join event e on e.organization_id = d.organization_id and e.id = d.event_id
      left join delivery_attempt a on a.organization_id = d.organization_id and a.webhook_id = d.webhook_id
        and a.event_id = d.event_id and a.number = d.attempts
    ) p on true
    order by p."eventId" desc`,
  );
  const found = rows.filter((row) => row.eventId !== null);
  const deliveries = found.slice(0, atMost).map(({ seen: _seen, lastSeen: _lastSeen, ...delivery }) => delivery);
  if (found.length > atMost) return { deliveries, older: deliveries.at(-1)?.eventId ?? null, hasStopped: false };
  const [looked] = rows;
  const hasStopped = looked !== undefined && looked.seen === scanLimit;
  return { deliveries, older: hasStopped ? looked.lastSeen : null, hasStopped };
}

/**
 * Lists a webhook's deliveries, newest event first, with as many searches as it takes.
 *
 * @throws WebhookRefused when the caller may not, or the organization has no such webhook.
 */
export async function listDeliveries(
  em: EntityManager,
  request: WebhookRequest,
  state: DeliveryState | null,
  { before, atMost }: { before: string | null; atMost: number },
): Promise<FoundDelivery[]> {
  const filter = { state, type: null, eventId: null, from: null, to: null };
  const found: FoundDelivery[] = [];
  for (let below = before; ; ) {
    const page = await searchDeliveries(em, request, filter, { before: below, atMost: atMost - found.length });
    found.push(...page.deliveries);
    if (page.older === null || found.length === atMost) return found;
    below = page.older;
  }
}

/** What a delivery `d`, with its last attempt `a`, is at now. */
export const nowColumns = sql`
  case when ${nextAttemptAt} is not null then greatest(0, extract(epoch
    from d.next_attempt_at - clock_timestamp()) * 1000)::double precision end as "dueInMs",
  a.number is not null and a.finished_at is null as "isAttempting", a.status as "lastStatus", a.cause as "lastCause"`;

/** An id may be a second off its event's time either way. */
const idAt = (moment: Date | null, plusMs = 0): string | null =>
  moment === null ? null : firstEventIdAt(new Date(moment.getTime() + plusMs));
