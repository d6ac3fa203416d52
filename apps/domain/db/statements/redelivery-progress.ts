import type { RedeliveryState } from '../entities/redelivery.ts';

/** The progress of a redelivery, for the workflow that carries it out. */
export interface RedeliveryPageRow {
  webhookId: string;
  state: RedeliveryState;
  /** ISO 8601 text, or null. */
  from: string | null;
  to: string | null;
  failedSince: string | null;
  /** For a range, whether only failed deliveries are sent again. */
  onlyFailed: boolean;
  requestedAt: string;
  isCancelAsked: boolean;
  pages: number;
  /** The event after which the next page begins; null before the first. */
  reached: string | null;
  seenAll: boolean;
  /** Events whose running workflows have to be notified. */
  unnotified: string[];
  seen: number;
  queued: number;
  retriesRequested: number;
}

const columns = /* sql */ `
  r.webhook_id as "webhookId", r.state, api.utc(r.range_from) as "from", api.utc(r.range_to) as "to",
    api.utc(r.failed_since) as "failedSince", r.only_failed as "onlyFailed",
  api.utc(r.requested_at) as "requestedAt", r.cancel_requested_at is not null as "isCancelAsked", r.pages, r.reached,
    r.seen_all as "seenAll",
  r.unnotified, r.seen, r.queued, r.retries_requested as "retriesRequested"`;

/**
 * Claims redeliveries without a lease, at most `$1`, for `$2` seconds: requested ones, and those
 * whose workflow has done no page since the lease of its last one. Returns a row each:
 * `{organizationId, redeliveryId, page, perSecond}`, `page` being the number of pages done, and
 * `perSecond` null for the worker's own rate.
 */
export const claimRedeliveriesSql = /* sql */ `
  update redelivery r set leased_until = clock_timestamp() + make_interval(secs => $2)
  from (
    select o.organization_id, o.id from redelivery o
    where o.state in ('requested', 'running') and (o.leased_until is null or o.leased_until < clock_timestamp())
    order by o.requested_at, o.id
    limit $1
    for no key update skip locked
  ) due
  where r.organization_id = due.organization_id and r.id = due.id
  returning r.organization_id as "organizationId", r.id as "redeliveryId", r.pages as page, r.per_second as "perSecond",
    (extract(epoch from clock_timestamp()) * 1000)::double precision as "nowMs"`;

/** One redelivery, locked until the transaction ends. `$1` organization, `$2` id. */
export const lockRedeliverySql = /* sql */ `
  select ${columns} from redelivery r where r.organization_id = $1 and r.id = $2 for no key update`;

/**
 * Records that a page is done. `$1`, `$2` the redelivery, `$3` where the next one begins (null:
 * there is none), `$4` the events whose workflows have to be notified, `$5` how many deliveries it
 * checked, `$6` how many it queued, `$7` seconds after which another worker claims it, `$8` how
 * many the selection includes.
 */
export const recordPageSql = /* sql */ `
  update redelivery r set state = 'running', pages = r.pages + 1, reached = coalesce($3, r.reached),
    seen_all = $3::uuid is null, unnotified = $4::uuid[],
    seen = r.seen + $5, matched = r.matched + $8, queued = r.queued + $6,
    retries_requested = r.retries_requested + cardinality($4::uuid[]),
      leased_until = clock_timestamp() + make_interval(secs => $7)
  where r.organization_id = $1 and r.id = $2
  returning ${columns}`;

/** Deliveries of `$3` with a workflow and due now: `{eventId, round}`. `$1`, `$2`: the webhook. */
export const listUnnotifiedSql = /* sql */ `
  select d.event_id as "eventId", d.round from delivery d
  where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = any ($3::uuid[]) and d.state = 'waiting'
    and d.started
    and d.next_attempt_at <= clock_timestamp()
  order by d.event_id`;

/** Records that the workflows of page `$3` were notified. `$1`, `$2` the redelivery. */
export const recordNotifiedSql = /* sql */ `
  update redelivery r set unnotified = '{}'
  where r.organization_id = $1 and r.id = $2 and r.pages = $3
  returning ${columns}`;

/**
 * Ends an open redelivery; a trigger writes its activity row. `$1`, `$2` the redelivery, `$3` `done`,
 * `cancelled` or `ended`, `$4` why it ended early, or null. Returns its row; none when it had ended
 * before.
 */
export const finishRedeliverySql = /* sql */ `
  with finished as (
    update redelivery r set state = $3::text, end_reason = $4::text, finished_at = clock_timestamp(),
      leased_until = null
    where r.organization_id = $1 and r.id = $2 and r.state in ('requested', 'running')
    returning r.*
  )
  select ${columns} from finished r`;
