import { holdsBack } from './order.ts';

/** Blocked deliveries that a statement looks up, 9 µs each. */
export const blockedPerPage = 500;

const lastUuid = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The row of `unblockSql`. */
export interface UnblockedRow {
  /** How many of the page were put into the queue. */
  unblocked: number;
  /** Where the next page begins: the last webhook and event of this one; null when the page was not full. */
  last: [webhookId: string, eventId: string] | null;
}

/**
 * Looks up the page of blocked deliveries after the one of webhook `$1` and event `$2`, and unblocks those that
 * nothing holds back any more: the order of the webhook was turned off, an event type was removed from it, or two
 * transactions did not see each other, because neither had committed (the writer of such a row and the settlement of
 * the one before, or two settlements). Those of a webhook that is not active can wait: a page that ends among them is
 * followed by the next webhook. Every worker goes round all pages, and writes only what it unblocks. Returns one
 * `UnblockedRow`.
 */
export const unblockSql = /* sql */ `
  with page as materialized (
    select b.organization_id, b.webhook_id, b.event_id, w.state <> 'active' as is_waiting,
      w.state = 'active' and not (w.ordered and exists (
        select from delivery p where ${holdsBack})) as is_free
    from (select d.* from delivery d
      where d.state = 'blocked' and (d.webhook_id, d.event_id) > ($1::uuid, $2::uuid)
      order by d.webhook_id, d.event_id limit ${blockedPerPage}) b
    join webhook w on w.organization_id = b.organization_id and w.id = b.webhook_id
  ), free as materialized (
    select d.* from page g cross join lateral (
      select d.organization_id, d.webhook_id, d.event_id, d.state from delivery d
      where d.organization_id = g.organization_id and d.webhook_id = g.webhook_id and d.event_id = g.event_id
      limit 1
      for no key update skip locked
    ) d
    where g.is_free and d.state = 'blocked'
  ), unblocked as (
    update delivery d set state = 'queued', due_at = clock_timestamp() from free f
    where d.organization_id = f.organization_id and d.webhook_id = f.webhook_id and d.event_id = f.event_id
    returning d.event_id
  )
  select (select count(*) from unblocked)::integer as unblocked, (
      select array[g.webhook_id, case when g.is_waiting then '${lastUuid}' else g.event_id end] from page g
      order by g.webhook_id, g.event_id offset ${blockedPerPage} - 1) as last`;
