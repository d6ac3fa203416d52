/**
 * Begins a new round of a waiting delivery, due now, as `replaceRoundSql` does for an overdue one.
 * `$1`…`$3` the delivery, `$4` the round that it replaces; no row when that is no longer current.
 */
export const beginRoundSql = /* sql */ `
  update delivery d set round = d.round + 1, started = false, claimed = false, leased_until = null,
    next_attempt_at = clock_timestamp()
  where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3 and d.round = $4 and d.state = 'waiting'
  returning d.round`;
