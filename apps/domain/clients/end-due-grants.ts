/**
 * Ends access whose end has passed, at most 500 grants a statement, so that a backlog never locks
 * many rows; a row that another writer changes waits for the next second. A trigger ends the
 * grant's seat. Returns a row per grant.
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
