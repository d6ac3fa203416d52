import type { Pool } from 'pg';

/** An organization in numbers, for the console's first page. */
export interface Overview {
  /** Keys that are neither revoked nor expired. */
  liveKeys: number;
  /**
   * Whether a key was ever made. This and the other three questions about the past stay answered:
   * what was done once is not asked for again.
   */
  keyMade: boolean;
  /** Whether a key has ever read something, as far as the activity log goes back. */
  keyUsed: boolean;
  webhookMade: boolean;
  /**
   * Whether a receiver has ever accepted something: a delivery, a test event, a check of
   * signatures.
   */
  delivered: boolean;
  /** Webhooks that are not deleted, and those of them that are parked. */
  webhooks: number;
  parkedWebhooks: number;
  /** The newest webhook that is not deleted, for a test event; null when there is none. */
  newestWebhookId: string | null;
  /** Whether a webhook is told when a seat is given. */
  isToldOfSeats: boolean;
  /** Deliveries under way or waiting for their next attempt, counted to `waitingCountedTo`. */
  waitingDeliveries: number;
  activeMembers: number;
  activeFamilies: number;
  seatsUsed: number;
}

/** How far waiting deliveries are counted; that many means at least so many. */
export const waitingCountedTo = 10_000;

/**
 * How many keys and webhooks are asked about their past, the newest; and of each how many lines or
 * deliveries, the oldest and the newest: 20,000 entries of an index at most.
 */
const thingsAsked = 50;
const linesAsked = 200;

/**
 * `$1` organization. Each part starts at an index of the organization and is bounded; the questions
 * about the past end at the first row that answers them. A key that is only refused, or a webhook
 * that nobody accepts, has as many such rows as it likes: its first and its last are looked at.
 */
const overviewSql = /* sql */ `
  select
    (select count(*)::int from api_key k where k.organization_id = $1 and k.revoked_at is null and k.maker_left_at is null and (k.expires_at is null or k.expires_at > now())) as "liveKeys",
    exists (select from api_key k where k.organization_id = $1) as "keyMade",
    exists (
      select from (select k.id from api_key k where k.organization_id = $1 order by k.id desc limit ${thingsAsked}) k
      where exists (
          select from (select a.status from activity a where a.organization_id = $1 and a.key_id = k.id order by a.at desc, a.id desc limit ${linesAsked}) a
          where a.status < 400
        ) or exists (
          select from (select a.status from activity a where a.organization_id = $1 and a.key_id = k.id order by a.at, a.id limit ${linesAsked}) a
          where a.status < 400
        )
    ) as "keyUsed",
    exists (select from webhook w where w.organization_id = $1) as "webhookMade",
    exists (select from webhook w where w.organization_id = $1 and w.signature_result in ('verified', 'accepts_bad_signatures'))
      or exists (
        select from (
          select a.detail from activity a where a.organization_id = $1 and a.action = 'webhook.tested' and a.status is null order by a.at desc, a.id desc limit ${linesAsked}
        ) a where a.detail ->> 'delivered' = 'true'
      )
      or exists (
        select from (select w.id from webhook w where w.organization_id = $1 order by w.id desc limit ${thingsAsked}) w
        where exists (
            select from (select d.state from delivery d where d.organization_id = $1 and d.webhook_id = w.id order by d.event_id desc limit ${linesAsked}) d
            where d.state = 'delivered'
          ) or exists (
            select from (select d.state from delivery d where d.organization_id = $1 and d.webhook_id = w.id order by d.event_id limit ${linesAsked}) d
            where d.state = 'delivered'
          )
      ) as delivered,
    (select count(*)::int from webhook w where w.organization_id = $1 and w.state <> 'deleted') as webhooks,
    (select count(*)::int from webhook w where w.organization_id = $1 and w.state = 'parked') as "parkedWebhooks",
    (select w.id from webhook w where w.organization_id = $1 and w.state <> 'deleted' order by w.created_at desc, w.id desc limit 1) as "newestWebhookId",
    exists (select from webhook w where w.organization_id = $1 and w.state <> 'deleted' and 'seat.given' = any (w.event_types)) as "isToldOfSeats",
    (select count(*)::int from (
      select from webhook w
      cross join lateral (
        select from delivery d where d.organization_id = w.organization_id and d.webhook_id = w.id and d.state = 'waiting' limit ${waitingCountedTo}
      ) d
      where w.organization_id = $1 and w.state = 'active'
      limit ${waitingCountedTo}
    ) counted) as "waitingDeliveries",
    (select count(*)::int from membership m where m.organization_id = $1 and m.status = 'active') as "activeMembers",
    (select count(distinct g.family_id)::int from client_grant g where g.organization_id = $1 and g.status = 'active') as "activeFamilies",
    (select count(*)::int from seat s where s.organization_id = $1 and s.ended_at is null) as "seatsUsed"`;

export async function getOverview(pool: Pool, organizationId: string): Promise<Overview> {
  const { rows } = await pool.query<Overview>({ name: 'getOverview', text: overviewSql, values: [organizationId] });
  return rows[0] as Overview;
}
