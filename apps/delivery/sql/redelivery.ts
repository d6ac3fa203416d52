import type { WebhookState } from '#domain/webhooks/webhook.entity.ts';

/** A redelivery whose next page is due. */
export interface DueRedeliveryRow {
  organizationId: string;
  id: string;
  webhookId: string;
  webhookState: WebhookState;
  /** ISO 8601 text, or null. */
  from: string | null;
  to: string | null;
  failedSince: string | null;
  requestedAt: string;
  isCancelRequested: boolean;
  /** The event after which the page begins; null before the first. */
  reached: string | null;
}

/**
 * Locks one redelivery whose next page is due until the transaction ends, and skips those that
 * another worker does: a `DueRedeliveryRow`, or none. When the worker dies, its page is undone.
 */
export const lockDueRedeliverySql = /* sql */ `
  select r.organization_id as "organizationId", r.id, r.webhook_id as "webhookId", w.state as "webhookState",
    api.utc(r.range_from) as "from", api.utc(r.range_to) as "to", api.utc(r.failed_since) as "failedSince",
    api.utc(r.requested_at) as "requestedAt",
    r.cancel_requested_at is not null as "isCancelRequested", r.reached
  from redelivery r join webhook w on w.organization_id = r.organization_id and w.id = r.webhook_id
  where r.state in ('requested', 'running') and (r.cancel_requested_at is not null
    or is_due(r.due_at, interval '1 second')) -- after a page of as many as are sent in a second
  order by random() -- one whose page fails each time holds back no other
  limit 1
  for no key update of r skip locked`;

/**
 * Records a page. `$1`, `$2` the redelivery, `$3` where the next one begins (null: it is done),
 * `$4` how many deliveries it checked, `$5` how many the selection includes, `$6` how many it
 * queued, `$7` seconds until the next page is due.
 */
export const recordPageSql = /* sql */ `
  update redelivery r set state = case when $3::uuid is null then 'done' else 'running' end,
    seen_all = $3::uuid is null, finished_at = case when $3::uuid is null then clock_timestamp() end,
    reached = coalesce($3::uuid, r.reached), seen = r.seen + $4::integer, matched = r.matched + $5::integer,
    queued = r.queued + $6::integer, due_at = clock_timestamp() + make_interval(secs => $7::double precision)
  where r.organization_id = $1 and r.id = $2`;

/**
 * Ends an open redelivery early; a trigger writes its audit entry. `$1`, `$2` the redelivery, `$3`
 * `cancelled` or `ended`, `$4` why it ended, or null. Returns `{state}` of one that was open.
 */
export const finishRedeliverySql = /* sql */ `
  update redelivery r set state = $3::text, end_reason = $4::text, finished_at = clock_timestamp()
  where r.organization_id = $1 and r.id = $2 and r.state in ('requested', 'running')
  returning r.state as "state"`;
