/**
 * Whether the delivery `p` holds back `b`: it is open, and an earlier one of the same webhook and subject. One of an
 * event type that the webhook does not get any more is sent, and holds back none. The type is looked up by keys for
 * each `p`, which are few: a join would let the planner choose.
 */
export const holdsBack = /* sql */ `p.organization_id = b.organization_id and p.webhook_id = b.webhook_id
        and p.subject_id = b.subject_id and p.state in ('queued', 'running', 'blocked')
        and (p.created_at, p.event_id) < (b.created_at, b.event_id)
        and (select e.type = any (w.event_types) from event e, webhook w
          where e.organization_id = p.organization_id and e.id = p.event_id
            and w.organization_id = p.organization_id and w.id = p.webhook_id)`;

/**
 * The parts of a statement that unblock the next delivery of a webhook and subject. `settled`: rows
 * with `organization_id`, `webhook_id`, `event_id` and `subject_id` of what the statement settles,
 * locked by it. Nothing is unblocked while another one before it stays open, such as one that was
 * redelivered.
 *
 * The next one is chosen before any row changes: a lock skips rows that its own statement has
 * changed, and would choose the one after.
 */
export const unblockNextSql = (settled: string) => /* sql */ `next_of_subject as materialized (
    select b.organization_id, b.webhook_id, b.event_id from ${settled} s cross join lateral (
      select b.organization_id, b.webhook_id, b.subject_id, b.event_id, b.created_at from delivery b
      where b.organization_id = s.organization_id and b.webhook_id = s.webhook_id and b.subject_id = s.subject_id
        and b.state = 'blocked' and b.event_id <> s.event_id
      order by b.created_at, b.event_id limit 1
      for no key update
    ) b
    where not exists (
      select from delivery p
      where ${holdsBack}
        and (p.webhook_id, p.event_id) not in (select o.webhook_id, o.event_id from ${settled} o))
  ), unblocked as (
    update delivery d set state = 'queued', due_at = clock_timestamp() from next_of_subject n
    where d.organization_id = n.organization_id and d.webhook_id = n.webhook_id and d.event_id = n.event_id
  )`;
