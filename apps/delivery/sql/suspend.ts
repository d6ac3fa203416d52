/**
 * Suspends active webhooks, each with an audit entry: those whose receiver answered 410, and those
 * whose first recorded failure since the last 2xx is `$1` seconds old and of which two events in a row
 * failed at their last attempt. At most 100 a statement. Returns `{organizationId, webhookId, reason}` each.
 *
 * Earlier attempts may have been lost, but the last one must have failed: a lost attempt or an
 * internal error does not end a schedule this way.
 */
export const suspendWebhooksSql = /* sql */ `
  with failing as (
    select w.organization_id, w.id, r.failing_since,
      case when r.gone_at is null then 'failures' else 'gone' end as reason
    from receiver r join webhook w on w.organization_id = r.organization_id and w.id = r.webhook_id
    where w.state = 'active' and (r.failing_since is not null or r.gone_at is not null)
      and (r.gone_at is not null or r.exhausted_in_row >= 2
        and r.failing_since <= statement_timestamp() - make_interval(secs => $1))
    order by r.failing_since, w.id
    limit 100
    for no key update of w skip locked
  ), suspended as (
    update webhook w set state = 'suspended', suspended_reason = f.reason
    from failing f where w.organization_id = f.organization_id and w.id = f.id
    returning w.organization_id, w.id, f.failing_since, f.reason
  )
  select p.organization_id as "organizationId", p.id as "webhookId", p.reason
  from suspended p cross join lateral record_worker_entry(p.organization_id, 'webhook.suspend', jsonb_strip_nulls(
    jsonb_build_object('webhookId', p.id, 'reason', p.reason, 'failingSince', api.utc(p.failing_since))))`;
