/**
 * Suspends active webhooks that have failed for `$1` seconds without accepting anything, of which at least two events
 * failed, and that were tried within the last `$2` seconds, each with its activity line. At most 100 a statement.
 * Returns a row per webhook: `{organizationId, webhookId}`. Their deliveries follow by `mendDeliveriesSql`.
 *
 * `failing_seconds` counts what `recordOutcomeSql` explains, and it is never more than the time since `failing_since`,
 * which has the index. A webhook that was not tried lately has nothing open, or the service cannot try it.
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
  ), line as (
    insert into activity (organization_id, action, detail)
    select p.organization_id, 'webhook.park', jsonb_build_object('webhookId', p.id, 'reason', 'failing', 'failingSince', api.utc(p.failing_since))
    from suspended p
  )
  select p.organization_id as "organizationId", p.id as "webhookId" from suspended p`;

/**
 * Moves open deliveries to where their webhook's state wants them, at most `$1` of each webhook and state: waiting ones of a parked webhook are parked, parked ones of an
 * active webhook wait in a new round, due now, and open ones of a deleted webhook are cancelled, with an activity line per webhook (`delivery.cancel`, by `$2`, null for
 * nobody). Returns a row per webhook: `{organizationId, webhookId, state, deliveries}`.
 *
 * Rows that someone else holds are passed over, so that it never waits for a delivery: whoever holds one may be about to take the webhook's row.
 */
const mendSql = (place: string, address = 'null') => /* sql */ `
  with recursive ${place}, wrong as (
    select w.organization_id, w.id as webhook_id, p.state,
      case w.state when 'active' then 'waiting' when 'parked' then 'parked' else 'cancelled' end as becomes
    from place p
    join webhook w on w.organization_id = p.organization_id and w.id = p.webhook_id
    where w.state = 'deleted' or (w.state = 'parked') = (p.state = 'waiting')
  ), picked as (
    select d.organization_id, d.webhook_id, d.event_id, w.becomes
    from wrong w
    cross join lateral (
      select d.organization_id, d.webhook_id, d.event_id from delivery d
      where d.organization_id = w.organization_id and d.webhook_id = w.webhook_id and d.state = w.state and d.state in ('waiting', 'parked')
      order by d.event_id
      limit $1
      for no key update skip locked
    ) d
  ), mended as (
    update delivery d set state = p.becomes, round = d.round + 1, started = false, claimed = false, leased_until = null,
      next_attempt_at = case p.becomes when 'waiting' then clock_timestamp() end,
      settled_at = case p.becomes when 'cancelled' then clock_timestamp() end
    from picked p
    where d.organization_id = p.organization_id and d.webhook_id = p.webhook_id and d.event_id = p.event_id
    returning d.organization_id, d.webhook_id, d.state
  ), moved as (
    select m.organization_id, m.webhook_id, m.state, count(*)::integer as deliveries from mended m group by m.organization_id, m.webhook_id, m.state
  ), line as (
    insert into activity (organization_id, person_id, address, action, detail)
    select m.organization_id, $2::text, ${address}::inet, 'delivery.cancel', jsonb_build_object('webhookId', m.webhook_id, 'deliveries', m.deliveries)
    from moved m where m.state = 'cancelled'
  )
  select m.organization_id as "organizationId", m.webhook_id as "webhookId", m.state, m.deliveries from moved m order by m.webhook_id, m.state`;

/**
 * The same for every webhook. It mends what races leave: an event is stored without a lock on its webhooks, so one may be born waiting while its webhook is being
 * parked. PostgreSQL before 18 does not skip within an index by itself, hence the recursion: one step per webhook and state that has open deliveries, however many.
 */
export const mendDeliveriesSql = mendSql(/* sql */ `place as (
    (select d.organization_id, d.webhook_id, d.state from delivery d
      where d.state in ('waiting', 'parked') order by d.organization_id, d.webhook_id, d.state limit 1)
    union all
    select n.organization_id, n.webhook_id, n.state from place p cross join lateral (
      select d.organization_id, d.webhook_id, d.state from delivery d
      where d.state in ('waiting', 'parked') and (d.organization_id, d.webhook_id, d.state) > (p.organization_id, p.webhook_id, p.state)
      order by d.organization_id, d.webhook_id, d.state limit 1
    ) n
  )`);

/** The same for one webhook whose state has just changed: `$3` its organization, `$4` its id, `$5` the address that it was asked from. */
export const mendWebhookSql = mendSql(
  /* sql */ `place as (
    select $3::uuid as organization_id, $4::uuid as webhook_id, s.state from unnest(array['waiting', 'parked']) as s (state)
  )`,
  '$5',
);

/** Erases rotated secrets whose overlap is over; they sign nothing any more. */
export const eraseExpiredSecretsSql = /* sql */ `delete from webhook_secret where valid_until <= clock_timestamp()`;
