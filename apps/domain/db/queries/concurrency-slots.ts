/**
 * How many attempts of the webhook that stands as `w` in a query may be under way at once: ten; while it comes back from a pause as many as its ramp allows; and while it fails, until its next 2xx, one.
 *
 * A receiver that hangs keeps each place for its 10 s, and then costs the end of one attempt and the beginning of another on machines that others' events need. One finds out that it is well again as ten do.
 */
export const concurrencySlotsSql = /* sql */ `case when w.failing_since is null then coalesce(w.ramp, 10) else 1 end`;
