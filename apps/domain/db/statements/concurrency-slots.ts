/**
 * The bounds of concurrent attempts, for the webhook `w` in a query. Admission enforces each by a
 * unique key of `concurrency_slot`; the claim applies them too, so that admission refuses little.
 */

/** Whether the webhook fails or its receiver recently took seconds; it then uses the slow queue. */
export const isSlowSql = /* sql */ `(w.failing_since is not null or w.slow_since is not null)`;

/**
 * The webhook's concurrency slots: ten; while it resumes after a pause as many as its ramp allows;
 * and while it fails, one until its next 2xx.
 *
 * A hanging receiver holds each slot for 10 s. Then one attempt ends and another begins, which
 * takes processor time from others' events. One slot finds a recovery as well as ten.
 */
export const concurrencySlotsSql = /* sql */ `case when w.failing_since is null then coalesce(w.ramp, 10) else 1 end`;

/**
 * The concurrency slots of the webhook's organization, separate for its prompt and its slow
 * webhooks.
 *
 * 50 for prompt ones: a quarter of one worker's default `DELIVERY_SLOTS`, so that 20 webhooks with
 * 10 slots each (200) cannot hold them all. 5 for slow ones: each of their attempts ends after some
 * seconds and another begins, and others' first attempts wait for its 40 ms of processor time. So
 * an organization whose receivers take 9 s costs others one attempt every two seconds, with any
 * number of webhooks.
 */
export const organizationSlotsSql = /* sql */ `case when ${isSlowSql} then 5 else 50 end`;

/** Slots of an organization at one host, for two webhooks: they are often on one machine. */
export const hostSlots = 20;

/** The receiving host of the webhook's URL, without its port. */
export const hostSql = /* sql */ `coalesce(substring(lower(w.url),
  '^[a-z]+://(?:[^/?#@]*@)?(\\[[^]]*\\]|[^/:?#]+)'), '')`;

/** Records that a webhook became slow (`$3` true) or prompt. `$1` organization, `$2` webhook. */
export const recordSpeedSql = /* sql */ `
  update webhook w set slow_since = case when $3::boolean then clock_timestamp() end
  where w.organization_id = $1 and w.id = $2 and (w.slow_since is null) = $3::boolean`;
