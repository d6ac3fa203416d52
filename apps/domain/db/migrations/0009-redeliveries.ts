import { Migration } from '@mikro-orm/migrations';

/**
 * Redeliveries of many: what was asked for, how far it has come, and how it ended. The row is the
 * request and the progress; a workflow, `redelivery/<id>`, only carries it out, so neither a lost
 * Temporal store nor a Temporal that is away loses one. Design, section 6. Running pods: survive
 * it, they do not know the table. A worker of before leaves requests standing until one of after
 * starts.
 */
export class Redeliveries extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create table redelivery (
        organization_id uuid not null,
        id uuid not null default new_id() constraint redelivery_id_unique unique,
        webhook_id uuid not null,
        -- Either the events of a range, or all that failed since a moment.
        range_from timestamptz,
        range_to timestamptz,
        failed_since timestamptz,
        state text not null default 'requested' constraint redelivery_state_known check (state in ('requested', 'running', 'done', 'cancelled', 'ended')),
        -- Why it ended before it had seen all.
        end_reason text constraint redelivery_end_reason_known check (end_reason in ('webhook_parked', 'webhook_deleted')),
        -- Null: an operator.
        requested_by text constraint redelivery_requester references person,
        requested_at timestamptz not null default now(),
        cancel_requested_at timestamptz,
        finished_at timestamptz,
        -- Pages done, and the event after which the next one goes on; null before the first.
        pages integer not null default 0 constraint redelivery_pages_not_negative check (pages >= 0),
        reached uuid,
        seen_all boolean not null default false,
        -- Events of the last page whose running workflows are still to be told to retry now.
        untold uuid[] not null default '{}',
        -- Deliveries looked at; put into a new round or due now for the relay; open with a workflow that is told.
        seen integer not null default 0,
        queued integer not null default 0,
        hurried integer not null default 0,
        -- Until then somebody looks after it; afterwards its workflow is started again.
        leased_until timestamptz,
        primary key (organization_id, id),
        constraint redelivery_webhook foreign key (organization_id, webhook_id) references webhook,
        constraint redelivery_one_selection check ((range_from is null) = (range_to is null) and (range_from is null) <> (failed_since is null)),
        constraint redelivery_range_not_empty check (range_from < range_to),
        constraint redelivery_counts_add_up check (queued >= 0 and hurried >= 0 and queued + hurried <= seen),
        constraint redelivery_finished_has_time check ((state in ('done', 'cancelled', 'ended')) = (finished_at is not null)),
        constraint redelivery_ended_has_reason check ((state = 'ended') = (end_reason is not null)),
        constraint redelivery_cancelled_was_asked check (state <> 'cancelled' or cancel_requested_at is not null),
        constraint redelivery_done_saw_all check (state <> 'done' or seen_all),
        constraint redelivery_finished_told_all check (finished_at is null or untold = '{}'),
        constraint redelivery_finished_has_no_lease check (finished_at is null or leased_until is null)
      );
      -- One at a time for a webhook: two together would keep neither's pace. It is also what the relay looks through.
      create unique index redelivery_one_open on redelivery (organization_id, webhook_id) where state in ('requested', 'running');
      create index redelivery_by_webhook on redelivery (organization_id, webhook_id, id);

      grant select, insert, update (state, end_reason, cancel_requested_at, finished_at, leased_until) on redelivery to org_api_console;
      grant select, update (state, end_reason, finished_at, pages, reached, seen_all, untold, seen, queued, hurried, leased_until)
        on redelivery to org_api_worker;
    `);
  }
}
