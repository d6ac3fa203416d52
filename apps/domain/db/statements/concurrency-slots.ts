/**
 * The bounds of what may be under way at once, for the webhook that stands as `w` in a query.
 * Admission enforces each by a unique key of `concurrency_slot`; the claim keeps to them so that
 * little is refused there.
 */

/**
 * Whether the webhook is slow: it fails, or its receiver lately took seconds to answer. Every
 * attempt of a slow webhook goes to the slow queue, and the slow webhooks of an organization share
 * few slots.
 */
export const isSlowSql = /* sql */ `(w.failing_since is not null or w.slow_since is not null)`;

/**
 * How many attempts of the webhook may be under way: ten; while it comes back from a pause as many
 * as its ramp allows; and while it fails, until its next 2xx, one.
 *
 * A receiver that hangs keeps each slot for its 10 s, and then costs the end of one attempt and the
 * beginning of another on machines that others' events need. One finds out that it is well again as
 * ten do.
 */
export const concurrencySlotsSql = /* sql */ `case when w.failing_since is null then coalesce(w.ramp, 10) else 1 end`;

/**
 * How many attempts of the webhook's organization may be under way, counted apart for its prompt
 * and its slow webhooks.
 *
 * 50 of prompt ones: a quarter of one worker's `DELIVERY_SLOTS` by default, so that 20 webhooks
 * with 10 slots each (200) cannot hold them all. 5 of slow ones: each ends and begins again after
 * some seconds, whose 40 ms of processor time are what others' first attempts wait for; so an
 * organization whose receivers take 9 s costs others one attempt every two seconds, however many
 * webhooks it has.
 */
export const organizationSlotsSql = /* sql */ `case when ${isSlowSql} then 5 else 50 end`;

/**
 * How many attempts of one organization may be under way at one receiving host: two webhooks'
 * worth, as its webhooks often end at the same machine.
 */
export const hostSlots = 20;

/** The receiving host of the webhook's URL, without its port. */
export const hostSql = /* sql */ `coalesce(substring(lower(w.url),
  '^[a-z]+://(?:[^/?#@]*@)?(\\[[^]]*\\]|[^/:?#]+)'), '')`;

/**
 * Records that a webhook became slow (`$3` true) or quick again: `$1` organization, `$2` webhook.
 * Changes nothing when that is on record already.
 */
export const recordSpeedSql = /* sql */ `
  update webhook w set slow_since = case when $3::boolean then clock_timestamp() end
  where w.organization_id = $1 and w.id = $2 and (w.slow_since is null) = $3::boolean`;
