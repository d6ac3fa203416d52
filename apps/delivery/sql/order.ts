import { deliveriesPerStatement } from '#domain/webhooks/limits.ts';

/**
 * The parts of a statement that unblock the next delivery of a webhook and grant. `settled`: rows
 * with `organization_id`, `webhook_id`, `event_id` and `grant_id` of what the statement settles,
 * locked by it. Nothing is unblocked while another one before it stays open, such as one that was
 * redelivered.
 *
 * The next one is chosen before any row changes: a lock skips rows that its own statement has
 * changed, and would choose the one after.
 */
export const unblockNextSql = (settled: string) => /* sql */ `next_of_grant as materialized (
    select s.organization_id, s.webhook_id, b.event_id from ${settled} s cross join lateral (
      select b.event_id, b.created_at from delivery b
      where b.organization_id = s.organization_id and b.webhook_id = s.webhook_id and b.grant_id = s.grant_id
        and b.state = 'blocked' and b.event_id <> s.event_id
      order by b.created_at, b.event_id limit 1
      for no key update
    ) b
    where not exists (
      select from delivery p
      where p.organization_id = s.organization_id and p.webhook_id = s.webhook_id and p.grant_id = s.grant_id
        and p.state in ('queued', 'running', 'blocked')
        and (p.webhook_id, p.event_id) not in (select o.webhook_id, o.event_id from ${settled} o)
        and (p.created_at, p.event_id) < (b.created_at, b.event_id))
  ), unblocked as (
    update delivery d set state = 'queued', due_at = clock_timestamp() from next_of_grant n
    where d.organization_id = n.organization_id and d.webhook_id = n.webhook_id and d.event_id = n.event_id
  )`;

/**
 * Looks up blocked deliveries that are due for it, a bounded number, and unblocks those without an open
 * one before them; any worker runs it each second. Two transactions did not see each other, because
 * neither had committed: the writer of such a row and the settlement of the one before, or two
 * settlements. The others are looked up again after as long as they have waited, ten minutes at
 * most. Returns for each that it looked up whether it waits.
 */
export const unblockSql = /* sql */ `
  with due as materialized (
    select b.organization_id, b.webhook_id, b.event_id, exists (
        select from delivery p
        where p.organization_id = b.organization_id and p.webhook_id = b.webhook_id and p.grant_id = b.grant_id
          and p.state in ('queued', 'running', 'blocked')
          and (p.created_at, p.event_id) < (b.created_at, b.event_id)) as waits
    from delivery b where b.state = 'blocked' and b.due_at < statement_timestamp()
    order by b.due_at limit ${deliveriesPerStatement}
    for no key update skip locked
  ), looked_up as (
    update delivery d set state = case when u.waits then 'blocked' else 'queued' end, due_at = clock_timestamp()
      + case when u.waits then least(interval '10 minutes', greatest(interval '1 second',
          clock_timestamp() - d.created_at)) else interval '0' end
    from due u
    where d.organization_id = u.organization_id and d.webhook_id = u.webhook_id and d.event_id = u.event_id
      and d.state = 'blocked'
    returning u.waits
  )
  select waits from looked_up`;
