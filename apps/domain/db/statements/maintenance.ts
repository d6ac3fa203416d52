/**
 * Ends access whose end has passed, at most 500 grants a statement so that a backlog never holds
 * many rows at once; a row that someone else is changing waits for the next second. Ending a grant
 * ends its seat, by trigger. Returns a row per grant.
 */
export const endDueGrantsSql = /* sql */ `
  update client_grant g set status = 'ended', end_reason = 'ended'
  from (
    select organization_id, id from client_grant
    where status = 'active' and ends_at <= now()
    order by ends_at, id
    limit 500
    for update skip locked
  ) due
  where g.organization_id = due.organization_id and g.id = due.id
  returning g.id`;

/** Makes the log's partitions three months ahead; one row, `{made}`. */
export const keepPartitionsSql = /* sql */ `select keep_activity_partitions() as made`;

/**
 * Drops what is older than `$1` days from the activity log; one row, `{dropped}`, an array of
 * months.
 */
export const dropOldActivitySql = /* sql */ `select drop_old_activity(make_interval(days => $1)) as dropped`;

/**
 * Purges deliveries that were settled more than `$1` days ago, with their attempts, and events as
 * old that have no delivery left, at most `$2` of each; one row, `{deliveries, events}`. What is
 * open or parked stays, and so does what the ledger has not found right; its sums stay as they are.
 * @throws with fewer than 31 days.
 */
export const purgeDeliveriesSql = /* sql */ `
  select f.deliveries, f.events from purge_deliveries(make_interval(days => $1), $2) f`;

/**
 * Deletes what has expired of signing in: sessions past their end or idle (with what they waited
 * for), links, challenges, known browsers, and attempts that no longer count. None of them can be
 * used any more; deleting them keeps personal data to what is needed. Hourly is enough.
 */
export const purgeExpiredSignInsSql = /* sql */ `select purge_expired_sign_ins()`;

/**
 * Bytes of the activity log's default partition, one row, `{bytes}`: 0 as long as every line found
 * the partition of its month. Needs no right to read the log.
 */
export const defaultPartitionBytesSql = /* sql */ `select pg_relation_size('public.activity_default')::float8 as bytes`;

/** How long the activity log is kept, one row, `{days}`; null before the worker applied it. */
export const activityRetentionSql = /* sql */ `select f.applied_days as days from retention_floor f`;

/** How many days settled deliveries are kept, as last applied; null before the first purge. */
export const deliveryRetentionSql = /* sql */ `
  select f.applied_delivery_days as days from retention_floor f`;
