/** A delivery's workflow, by its id. */
export interface RunningRound {
  webhookId: string;
  eventId: string;
  round: number;
}

/**
 * Lists the orphaned ones among running workflows: their delivery is parked or settled, or another
 * round of it is current.
 *
 * `$1`…`$3`: webhooks, events, rounds, arrays of equal length. A workflow whose attempt settled the
 * delivery within the last minute is excluded: it is about to end by itself. A webhook that is not
 * in this database belongs to another installation, and so do its workflows.
 */
export const listOrphanedWorkflowsSql = /* sql */ `
  select r.webhook_id as "webhookId", r.event_id as "eventId", r.round,
    (extract(epoch from clock_timestamp()) * 1000)::double precision as "nowMs"
  from unnest($1::uuid[], $2::uuid[], $3::integer[]) as r (webhook_id, event_id, round)
  join webhook w on w.id = r.webhook_id
  join delivery d on d.organization_id = w.organization_id and d.webhook_id = w.id and d.event_id = r.event_id
  where (d.state <> 'waiting' or d.round <> r.round or w.state <> 'active' or d.epoch <> w.epoch)
    and not (d.state in ('delivered', 'exhausted') and d.settled_at > clock_timestamp() - interval '60 seconds')
  order by r.webhook_id, r.event_id, r.round`;

/**
 * Claims the sweep over running workflows, if it is due: one row, `{placeMs}` (Unix time, null: it
 * begins with the newest), and no other worker gets one for `$1` seconds. No row while it is not
 * due. It is not returned: when a worker dies, the next one continues.
 */
export const claimSweepSql = /* sql */ `
  update workflow_sweep s set due_at = clock_timestamp() + make_interval(secs => $1)
  where s.due_at <= clock_timestamp()
  returning (extract(epoch from s.place) * 1000)::double precision as "placeMs"`;

/** Records where the next sweep continues. `$1`: Unix time in ms, null: from the newest. */
export const recordSweepSql = /* sql */ `update workflow_sweep s set place = to_timestamp($1::double precision / 1000)`;
