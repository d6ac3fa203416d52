/**
 * What the worker writes each second: begins, then ends whose time has come. Of access that began and
 * ended while no worker ran, both events are written, in this order. Each takes at most 500 grants, so
 * that a backlog never locks many rows; a row that another writer changes waits for the next second.
 * Triggers write the events, and end the seat of what ends. Each returns a row per grant.
 */
export const beginDueGrantsSql = /* sql */ `
  update client_grant g set status = 'active'
  from (
    select organization_id, id from client_grant
    where status = 'scheduled' and since <= now()
    order by since, id
    limit 500
    for update skip locked
  ) due
  where g.organization_id = due.organization_id and g.id = due.id
  returning g.id`;

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
