import { sql } from 'kysely';
import { isActiveGrant, isScheduledGrant } from '#domain/clients/grant-conditions.ts';
import type { Queryable } from '#domain/db/database.ts';
import { isOpen } from '#domain/webhooks/deliveries.ts';

/** Counts of an organization, for the console's overview. */
export interface Overview {
  /** Keys that are neither revoked nor expired. */
  validKeys: number;
  /**
   * Whether a key was created since the organization's first sign-in. This and the other three
   * `has…` stay true. Older keys and webhooks, such as samples, do not count.
   */
  hasCreatedKey: boolean;
  /** Whether a key was ever used for a successful read, within the audit log's retention. */
  hasUsedKey: boolean;
  hasCreatedWebhook: boolean;
  /** Whether a receiver ever accepted a delivery, a test event or a signature check. */
  hasDelivered: boolean;
  /** Webhooks that are not deleted, and those of them that need attention. */
  webhooks: number;
  failingWebhooks: number;
  suspendedWebhooks: number;
  pausedWebhooks: number;
  /** The newest webhook that is not deleted, for a test event; null when there is none. */
  newestWebhookId: string | null;
  /** Whether a webhook subscribes to `seat.given`. */
  hasSeatWebhook: boolean;
  /** Open deliveries of active webhooks, counted up to `waitingCountedTo`. */
  waitingDeliveries: number;
  activeMembers: number;
  activeFamilies: number;
  /** When the next access that lies ahead begins; null when there is none. */
  nextBegin: Date | null;
  seatsUsed: number;
}

/** The highest count of waiting deliveries; it means this many or more. */
export const waitingCountedTo = 10_000;

/** How many newest keys and webhooks are checked, and how many oldest and newest rows of each. */
const thingsChecked = 50;
const rowsChecked = 200;

/**
 * Returns the counts of an organization. Each part starts at an index of the organization and is
 * bounded; a question about the past ends at the first row that answers it. A key that is only
 * rejected, or a webhook whose receiver accepts nothing, may have any number of such rows, so only
 * its first and last ones are checked.
 */
export async function getOverview(db: Queryable, id: string): Promise<Overview> {
  const [overview] = await db.query(sql<Overview>`
    with first_sign_in as (
      select coalesce(min(c.confirmed_at), 'infinity') as at from membership m
      join sign_in_confirmation c on c.person_id = m.person_id and c.organization_id = m.organization_id
      where m.organization_id = ${id}
    ), own_key as (
      select k.id from api_key k, first_sign_in f where k.organization_id = ${id} and k.created_at >= f.at
      order by k.id desc limit ${sql.lit(thingsChecked)}
    ), own_webhook as (
      select w.id, w.signature_result from webhook w, first_sign_in f
      where w.organization_id = ${id} and w.created_at >= f.at order by w.id desc limit ${sql.lit(thingsChecked)}
    )
    select
      (select count(*)::int from api_key k where k.organization_id = ${id} and k.revoked_at is null
        and k.creator_left_at is null and (k.expires_at is null or k.expires_at > now())) as "validKeys",
      exists (select from own_key) as "hasCreatedKey",
      exists (
        select from own_key k
        where exists (
            select from (select a.status from audit_entry a where a.organization_id = ${id} and a.key_id = k.id
              order by a.at desc, a.id desc limit ${sql.lit(rowsChecked)}) a
            where a.status < 400
          ) or exists (
            select from (select a.status from audit_entry a where a.organization_id = ${id} and a.key_id = k.id
              order by a.at, a.id limit ${sql.lit(rowsChecked)}) a
            where a.status < 400
          )
      ) as "hasUsedKey",
      exists (select from own_webhook) as "hasCreatedWebhook",
      exists (select from own_webhook w where w.signature_result in ('verified', 'accepts_bad_signatures'))
        or exists (
          select from (
            select a.detail from audit_entry a where a.organization_id = ${id} and a.action = 'webhook.tested'
              and a.status is null order by a.at desc, a.id desc limit ${sql.lit(rowsChecked)}
          ) a where a.detail ->> 'delivered' = 'true'
        )
        or exists (
          select from own_webhook w
          where exists (
              select from (select d.state from delivery d where d.organization_id = ${id} and d.webhook_id = w.id
                order by d.event_id desc limit ${sql.lit(rowsChecked)}) d
              where d.state = 'delivered'
            ) or exists (
              select from (select d.state from delivery d where d.organization_id = ${id} and d.webhook_id = w.id
                order by d.event_id limit ${sql.lit(rowsChecked)}) d
              where d.state = 'delivered'
            )
        ) as "hasDelivered",
      (select count(*)::int from webhook w where w.organization_id = ${id} and w.state <> 'deleted') as webhooks,
      (select count(*)::int from webhook w
        join receiver r on r.organization_id = w.organization_id and r.webhook_id = w.id
        where w.organization_id = ${id} and w.state = 'active' and r.failing_since is not null) as "failingWebhooks",
      (select count(*)::int from webhook w
        where w.organization_id = ${id} and w.state = 'suspended') as "suspendedWebhooks",
      (select count(*)::int from webhook w where w.organization_id = ${id} and w.state = 'paused') as "pausedWebhooks",
      (select w.id from webhook w where w.organization_id = ${id} and w.state <> 'deleted'
        order by w.created_at desc, w.id desc limit 1) as "newestWebhookId",
      exists (select from webhook w where w.organization_id = ${id} and w.state <> 'deleted'
        and 'seat.given' = any (w.event_types)) as "hasSeatWebhook",
      (select count(*)::int from (
        select from webhook w
        cross join lateral (
          select from delivery d where d.organization_id = w.organization_id and d.webhook_id = w.id
            and ${isOpen} limit ${sql.lit(waitingCountedTo)}
        ) d
        where w.organization_id = ${id} and w.state = 'active'
        limit ${sql.lit(waitingCountedTo)}
      ) counted) as "waitingDeliveries",
      (select count(*)::int from membership m
        where m.organization_id = ${id} and m.status = 'active') as "activeMembers",
      (select count(distinct g.family_id)::int from client_grant g
        where g.organization_id = ${id} and ${isActiveGrant}) as "activeFamilies",
      (select min(g.since) from client_grant g
        where g.organization_id = ${id} and ${isScheduledGrant}) as "nextBegin",
      (select count(*)::int from seat s where s.organization_id = ${id} and s.ended_at is null) as "seatsUsed"`);
  return overview as Overview;
}
