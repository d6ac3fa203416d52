import { isSendingSql } from '#domain/webhooks/delivery-switch.ts';
import type { WebhookState } from '#domain/webhooks/webhook.entity.ts';
import type { StartedRun } from '#workflows/deliver-event/types.ts';

export interface QueuedWebhook {
  organizationId: string;
  webhookId: string;
  state: WebhookState;
  /** Whether its bound of posts a second leaves none now. */
  mustWait: boolean;
}

/**
 * Lists webhooks that have queued deliveries, in the order of their ids: at most `$3` after the
 * webhook `$2` of organization `$1`, and none while the region does not send deliveries. A relay
 * runs this many times a second, so it reads one index entry per webhook (30 µs when there are
 * none), and steps from one to the next itself: PostgreSQL before 18 does not skip within an index.
 */
export const listQueuedSql = /* sql */ `
  with recursive queued as (
    (select d.organization_id, d.webhook_id from delivery d
      where d.state = 'queued' and ${isSendingSql} and (d.organization_id, d.webhook_id) > ($1::uuid, $2::uuid)
      order by d.organization_id, d.webhook_id limit 1)
    union all
    select n.organization_id, n.webhook_id from queued q cross join lateral (
      select d.organization_id, d.webhook_id from delivery d
      where d.state = 'queued' and (d.organization_id, d.webhook_id) > (q.organization_id, q.webhook_id)
      order by d.organization_id, d.webhook_id limit 1
    ) n
  )
  select q.organization_id as "organizationId", q.webhook_id as "webhookId", w.state,
    w.posts_per_second is not null and (
      select free_posts(w.posts_per_second, r.posts_full_at) < 1 from receiver r
      where r.organization_id = w.organization_id and r.webhook_id = w.id) as "mustWait"
  from (select * from queued limit $3::integer) q
  join webhook w on w.organization_id = q.organization_id and w.id = q.webhook_id
  order by q.organization_id, q.webhook_id`;

/** A delivery that a relay has claimed, and has to start within the reserved time. */
export interface ClaimedDelivery extends StartedRun {
  /** Whether the webhook, its organization or its host has no slot left after this claim. */
  isFull: boolean;
}

/** Claims due deliveries, each with a reserved slot; the function explains its parameters. */
export const claimDeliveriesSql = /* sql */ `
  select c.* from claim_deliveries($1::uuid[], $2::uuid[], $3, $4, $5) c`;

/**
 * Returns claims whose runs were not started, so that any relay may claim them at once. `$1`…`$4`:
 * organizations, webhooks, events, runs, arrays of equal length. A claim whose attempt was admitted
 * meanwhile, or that another relay has taken over, stays as it is. So does one whose row another
 * transaction has locked: its reservation ends soon.
 */
export const returnClaimsSql = /* sql */ `
  with target as materialized (
    select d.organization_id, d.webhook_id, d.event_id
    from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::integer[]) as c (organization_id, webhook_id, event_id, run)
    cross join lateral (
      select d.organization_id, d.webhook_id, d.event_id, d.run, d.state from delivery d
      where d.organization_id = c.organization_id and d.webhook_id = c.webhook_id and d.event_id = c.event_id
      limit 1
      for no key update skip locked
    ) d
    where d.run = c.run and d.state = 'running'
  ), freed as (
    delete from slot s using target t
    where s.organization_id = t.organization_id and s.webhook_id = t.webhook_id and s.event_id = t.event_id
      and s.attempt_id is null
    returning s.organization_id, s.webhook_id, s.event_id
  )
  update delivery d set state = 'queued' from freed f
  where d.organization_id = f.organization_id and d.webhook_id = f.webhook_id and d.event_id = f.event_id`;
