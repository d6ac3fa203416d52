/**
 * Ends access whose end has passed, at most 500 grants a statement so that a backlog never holds many rows at once; a row that someone
 * else is changing waits for the next second. Ending a grant ends its seat, by trigger. Returns a row per grant.
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

/** Drops what is older than `$1` days from the activity log; one row, `{dropped}`, an array of months. */
export const dropOldActivitySql = /* sql */ `select drop_old_activity(make_interval(days => $1)) as dropped`;
