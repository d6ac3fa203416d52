import { isOpenSql } from './open-deliveries.ts';

/**
 * Suspends active webhooks that have failed for `$1` seconds without accepting anything, of which
 * at least two events failed, and that were tried within the last `$2` seconds, each with an
 * activity row. At most 100 a statement. Returns a row per webhook: `{organizationId, webhookId}`.
 * Their deliveries are parked with them.
 *
 * `failing_seconds` counts what `recordOutcomeSql` explains. It is never more than the time since
 * `failing_since`, which has the index. A webhook without a recent attempt has nothing open, or the
 * service cannot try it.
 */
export const suspendFailingWebhooksSql = /* sql */ `
  with failing as (
    select w.organization_id, w.id, w.failing_since from webhook w
    where w.state = 'active' and w.failing_since <= clock_timestamp() - make_interval(secs => $1)
      and w.failing_seconds >= $1 and w.has_failed_twice
      and w.last_failed_at >= clock_timestamp() - make_interval(secs => $2)
    order by w.failing_since, w.id
    limit 100
    for no key update skip locked
  ), suspended as (
    update webhook w set state = 'parked', parked_reason = 'failing', ramp = null
    from failing f where w.organization_id = f.organization_id and w.id = f.id
    returning w.organization_id, w.id, f.failing_since
  )
  select p.organization_id as "organizationId", p.id as "webhookId"
  from suspended p cross join lateral record_worker_activity(p.organization_id, 'webhook.park',
    jsonb_build_object('webhookId', p.id, 'reason', 'failing', 'failingSince', api.utc(p.failing_since)))`;

/**
 * Restarts deliveries of resumed webhooks, at most `$1` of each webhook: those that were started
 * before it was parked, in a new round that is due now. Returns a row per webhook:
 * `{organizationId, webhookId, deliveries}`.
 *
 * It stays at most `$1` of them ahead of the relay, so each of a million deliveries is written just
 * before it is claimed. They precede what occurred while the webhook was parked, which was never
 * started.
 */
export const restartDeliveriesSql = /* sql */ `
  with hook as (
    select w.organization_id, w.id, w.epoch from webhook w where w.follow_until is not null and w.state = 'active'
  ), picked as (
    select d.organization_id, d.webhook_id, d.event_id
    from hook h
    cross join lateral (
      select count(*) filter (where u.round > 1) as count from (
        select u.round from delivery u
        where u.organization_id = h.organization_id and u.webhook_id = h.id and u.state = 'waiting' and not u.started
        order by u.created_at, u.event_id limit $1) u
    ) ahead
    cross join lateral (
      select d.organization_id, d.webhook_id, d.event_id from delivery d
      where d.organization_id = h.organization_id and d.webhook_id = h.id and d.state = 'waiting' and d.started
        and d.epoch < h.epoch
      order by d.epoch, d.next_attempt_at
      limit greatest(0, $1 - ahead.count)
      for no key update skip locked
    ) d
  ), restarted as (
    update delivery d set round = d.round + 1, started = false, claimed = false, leased_until = null,
      next_attempt_at = clock_timestamp()
    from picked p
    where d.organization_id = p.organization_id and d.webhook_id = p.webhook_id and d.event_id = p.event_id
    returning d.organization_id, d.webhook_id
  ), followed as (
    update webhook w set follow_until = null
    from hook h
    where w.organization_id = h.organization_id and w.id = h.id and w.follow_until < clock_timestamp()
      and w.epoch = h.epoch
      and not exists (
        select from delivery d
        where d.organization_id = h.organization_id and d.webhook_id = h.id and d.state = 'waiting' and d.started
          and d.epoch < h.epoch)
  )
  select r.organization_id as "organizationId", r.webhook_id as "webhookId", count(*)::integer as deliveries
  from restarted r group by r.organization_id, r.webhook_id order by r.webhook_id`;

/**
 * Cancels open deliveries of deleted webhooks, at most `$1` of each. Returns a row per webhook:
 * `{organizationId, webhookId, deliveries}`.
 *
 * Rows that another process has locked are skipped, so that it never waits for a delivery whose
 * holder may be about to lock the webhook's row. An event is stored without a lock on its webhooks,
 * so one may be stored for a webhook that is being deleted: `follow_until` covers that time.
 */
const cancelSql = (which: string, record = '') => /* sql */ `
  with hook as (
    select w.organization_id, w.id from webhook w where ${which} and w.state = 'deleted'
  ), picked as (
    select d.organization_id, d.webhook_id, d.event_id
    from hook h
    cross join lateral (
      select d.organization_id, d.webhook_id, d.event_id from delivery d
      where d.organization_id = h.organization_id and d.webhook_id = h.id and ${isOpenSql}
      order by d.event_id
      limit $1
      for no key update skip locked
    ) d
  ), cancelled as (
    update delivery d set state = 'cancelled', round = d.round + 1, started = false, claimed = false,
      leased_until = null,
      next_attempt_at = null, settled_at = clock_timestamp()
    from picked p
    where d.organization_id = p.organization_id and d.webhook_id = p.webhook_id and d.event_id = p.event_id
    returning d.organization_id, d.webhook_id
  ), moved as (
    select c.organization_id, c.webhook_id, count(*)::integer as deliveries
      from cancelled c group by c.organization_id, c.webhook_id
  ), followed as (
    update webhook w set follow_until = null
    from hook h
    where w.organization_id = h.organization_id and w.id = h.id and w.follow_until < clock_timestamp()
      and not exists (select from delivery d where d.organization_id = h.organization_id and d.webhook_id = h.id
      and ${isOpenSql})
  )
  select m.organization_id as "organizationId", m.webhook_id as "webhookId", m.deliveries from moved m
    ${record}
    order by m.webhook_id`;

/**
 * The same for every deleted webhook that has deliveries left, or may get one, with an activity row
 * of the worker per webhook.
 */
export const cancelDeliveriesSql = cancelSql(
  'w.follow_until is not null',
  `cross join lateral record_worker_activity(m.organization_id, 'delivery.cancel',
      jsonb_build_object('webhookId', m.webhook_id, 'deliveries', m.deliveries))`,
);

/** The same for a webhook just deleted, `$2` organization, `$3` id. The caller writes the row. */
export const cancelWebhookDeliveriesSql = cancelSql('w.organization_id = $2 and w.id = $3');

/** Counts open deliveries, up to 10,000: `{deliveries}`. `$1` organization, `$2` webhook. */
export const countOpenDeliveriesSql = /* sql */ `
  select count(*)::integer as deliveries from (
    select from delivery d where d.organization_id = $1 and d.webhook_id = $2 and ${isOpenSql} limit 10000) o`;

/** Deletes rotated secrets whose overlap has ended. */
export const purgeExpiredSecretsSql = /* sql */ `select purge_expired_secrets()`;
