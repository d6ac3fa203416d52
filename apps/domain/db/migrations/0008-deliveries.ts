import { Migration } from '@mikro-orm/migrations';

/** Events, a delivery of each to every subscribed webhook, attempts, and requests to redeliver. */
export class Deliveries extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create table event (
        organization_id uuid not null constraint event_organization references organization,
        id uuid not null,
        type text not null,
        created_at timestamptz not null,
        body text not null,
        -- How many deliveries were created with it: the ledger's independent count.
        delivery_count integer not null constraint event_delivery_count_not_negative check (delivery_count >= 0),
        -- Counted in the ledger's sums by day.
        rolled_up boolean not null default false,
        primary key (organization_id, id)
      );
      create index event_by_time on event (created_at);
      create index event_not_rolled_up on event (created_at) include (delivery_count) where not rolled_up;
      -- An event is stored whether a webhook subscribes to it or not.
      create index event_without_deliveries on event (created_at) where delivery_count = 0;

      create table delivery (
        organization_id uuid not null,
        webhook_id uuid not null,
        event_id uuid not null,
        state text not null
          constraint delivery_state_known check (state in ('waiting', 'delivered', 'exhausted', 'cancelled')),
        -- Which round is current: redelivery, resume and repair each begin a new one, and an
        -- attempt of an older one is not admitted.
        round integer not null default 1 constraint delivery_round_positive check (round > 0),
        attempts integer not null default 0 constraint delivery_attempts_not_negative check (attempts >= 0),
        -- The sequence number in the webhook, without gaps; assigned when the relay first claims
        -- it.
        sequence bigint,
        next_attempt_at timestamptz,
        -- Held by a relay that is starting its workflow, until then at most.
        leased_until timestamptz,
        -- Whether the workflow of this round has been started.
        started boolean not null default false,
        -- The webhook's epoch when a relay claimed this round.
        epoch integer not null default 1,
        -- Whether it holds one of the webhook's slots without an attempt in progress: claimed, and
        -- not yet admitted.
        claimed boolean not null default false,
        created_at timestamptz not null,
        settled_at timestamptz,
        -- Counted in the ledger's sums by day.
        rolled_up boolean not null default false,
        primary key (organization_id, webhook_id, event_id),
        constraint delivery_event foreign key (organization_id, event_id) references event,
        constraint delivery_webhook foreign key (organization_id, webhook_id) references webhook,
        constraint delivery_waiting_has_next_attempt check ((state = 'waiting') = (next_attempt_at is not null)),
        constraint delivery_settled_has_time
          check ((state in ('delivered', 'exhausted', 'cancelled')) = (settled_at is not null)),
        constraint delivery_claimed_is_waiting check (not claimed or state = 'waiting'),
        constraint delivery_rolled_up_is_settled check (not rolled_up or settled_at is not null)
      );
      create index delivery_unstarted on delivery (organization_id, webhook_id, created_at, event_id)
        where state = 'waiting' and not started;
      create index delivery_claimed on delivery (organization_id, webhook_id) where claimed;
      -- Retries that are due and wait for a concurrency slot: while there are any, no new delivery
      -- of the webhook starts.
      create index delivery_retry on delivery (organization_id, webhook_id, epoch, next_attempt_at)
        where state = 'waiting' and started;
      -- The second condition is always true. It keeps statements that do not name it (isOpenSql)
      -- from this index: after many deliveries were settled, the claim and the poll read all
      -- queued deliveries with it, because its empty pages were fewer than those of
      -- delivery_unstarted.
      create index delivery_open on delivery (webhook_id, event_id) where state = 'waiting' and round > 0;
      -- Failed deliveries are rare, and people search for them first.
      create index delivery_given_up on delivery (organization_id, webhook_id, state, event_id)
        where state in ('exhausted', 'cancelled');
      create index delivery_not_rolled_up on delivery (settled_at)
        where not rolled_up and state in ('delivered', 'exhausted', 'cancelled');
      create index delivery_rolled_up on delivery (settled_at) where rolled_up;
      -- The order of an organization's list of deliveries, across its webhooks.
      create index delivery_by_event on delivery (organization_id, event_id, webhook_id);
      create unique index delivery_sequence_unique on delivery (organization_id, webhook_id, sequence)
        where sequence is not null;

      create table delivery_attempt (
        organization_id uuid not null,
        webhook_id uuid not null,
        event_id uuid not null,
        number integer not null constraint delivery_attempt_number_positive check (number > 0),
        round integer not null,
        -- Whether the schedule had no further attempt after this one: with a failure, the proof
        -- that a delivery is exhausted.
        is_last boolean not null,
        signed_with uuid[] not null,
        started_at timestamptz not null,
        finished_at timestamptz,
        status smallint,
        cause text,
        explanation text,
        timings jsonb,
        peer_address inet,
        kept_bytes integer,
        -- By name, in the order in which they were sent; null for an attempt that was lost.
        -- Signatures are not secret: the receiver got them, and none is valid for more than 5
        -- minutes.
        headers json,
        answer bytea constraint delivery_attempt_answer_size check (length(answer) <= 16384),
        primary key (organization_id, webhook_id, event_id, number),
        constraint delivery_attempt_delivery foreign key (organization_id, webhook_id, event_id) references delivery,
        constraint delivery_attempt_finished_has_cause check ((finished_at is null) = (cause is null))
      );
      -- One attempt of a delivery at a time, whichever process admits it.
      create unique index delivery_attempt_one_open on delivery_attempt (organization_id, webhook_id, event_id)
        where finished_at is null;
      -- The condition is always true, and keeps every statement that does not name it from this
      -- index: without statistics the planner took it for the attempts of one delivery, instead of
      -- the primary key, and read all attempts of the webhook for each (11 s for a ledger of
      -- 5,000).
      create index delivery_attempt_lately on delivery_attempt (organization_id, webhook_id, started_at)
        where number > 0;

      -- The attempts in progress: each holds a concurrency slot, from its admission to the
      -- statement that records how it ended. The keys prove each bound whichever process admits,
      -- and counting them reads these few rows, however many attempts are kept. No foreign key: it
      -- would lock the webhook's row for each attempt.
      create table concurrency_slot (
        organization_id uuid not null,
        webhook_id uuid not null,
        slot smallint not null constraint concurrency_slot_of_10 check (slot between 1 and 10),
        -- One of its organization's slots, numbered separately for prompt and slow webhooks, and
        -- one at its receiving host.
        is_slow boolean not null,
        organization_slot smallint not null
          constraint concurrency_slot_organization_slot_positive check (organization_slot > 0),
        host text not null,
        host_slot smallint not null constraint concurrency_slot_host_slot_positive check (host_slot > 0),
        event_id uuid not null,
        number integer not null,
        started_at timestamptz not null,
        -- Created by the process that requested the admission, which finds it by this id when the
        -- reply was lost.
        admission_id uuid not null,
        primary key (organization_id, webhook_id, slot),
        constraint concurrency_slot_one_of_organization unique (organization_id, is_slow, organization_slot),
        constraint concurrency_slot_one_of_host unique (organization_id, host, host_slot)
      -- Rows live for seconds and the table is nearly empty, so a share of it says nothing about
      -- dead rows.
      ) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
    `);

    // A row is the request and its progress; a workflow, `redelivery/<id>`, only carries it out. So
    // neither a lost Temporal store nor an outage of Temporal loses a request.
    this.addSql(/* sql */ `
      create table redelivery (
        organization_id uuid not null,
        id uuid not null default new_id() constraint redelivery_id_unique unique,
        webhook_id uuid not null,
        -- Either the events of a range, or all that failed since a moment.
        range_from timestamptz,
        range_to timestamptz,
        failed_since timestamptz,
        -- Of a range, only what has failed; and how many deliveries it sends in a second, null for
        -- the worker's own rate.
        only_failed boolean not null default false,
        per_second smallint constraint redelivery_rate_in_range check (per_second between 1 and 100),
        state text not null default 'requested'
          constraint redelivery_state_known check (state in ('requested', 'running', 'done', 'cancelled', 'ended')),
        -- Why it ended before it had scanned all.
        end_reason text
          constraint redelivery_end_reason_known check (end_reason in ('webhook_parked', 'webhook_deleted')),
        -- Null: an operator.
        requested_by text constraint redelivery_requester references person,
        requested_at timestamptz not null default now(),
        cancel_requested_at timestamptz,
        finished_at timestamptz,
        -- Pages done, and the event after which the next one continues; null before the first.
        pages integer not null default 0 constraint redelivery_pages_not_negative check (pages >= 0),
        reached uuid,
        seen_all boolean not null default false,
        -- Events of the last page whose running workflows are still to be notified to retry now.
        unnotified uuid[] not null default '{}',
        -- Deliveries scanned; put into a new round or due now for the relay; open with a workflow
        -- that is notified.
        seen integer not null default 0,
        matched integer not null default 0,
        queued integer not null default 0,
        retries_requested integer not null default 0,
        -- Until then a workflow holds it; afterwards its workflow is started again.
        leased_until timestamptz,
        primary key (organization_id, id),
        constraint redelivery_webhook foreign key (organization_id, webhook_id) references webhook,
        constraint redelivery_one_selection
          check ((range_from is null) = (range_to is null) and (range_from is null) <> (failed_since is null)),
        constraint redelivery_only_failed_of_range check (not only_failed or range_from is not null),
        constraint redelivery_range_not_empty check (range_from < range_to),
        constraint redelivery_counts_add_up check (queued >= 0 and retries_requested >= 0
          and queued + retries_requested <= matched and matched <= seen),
        constraint redelivery_finished_has_time
          check ((state in ('done', 'cancelled', 'ended')) = (finished_at is not null)),
        constraint redelivery_ended_has_reason check ((state = 'ended') = (end_reason is not null)),
        constraint redelivery_cancelled_was_asked check (state <> 'cancelled' or cancel_requested_at is not null),
        constraint redelivery_done_saw_all check (state <> 'done' or seen_all),
        constraint redelivery_finished_notified_all check (finished_at is null or unnotified = '{}'),
        constraint redelivery_finished_has_no_lease check (finished_at is null or leased_until is null)
      );
      -- One at a time for a webhook: two together would exceed the rate of each. The relay also
      -- scans this index.
      create unique index redelivery_one_open on redelivery (organization_id, webhook_id)
        where state in ('requested', 'running');
      create index redelivery_by_webhook on redelivery (organization_id, webhook_id, id);
    `);

    // Whether the region admits deliveries; each admission reads it in its own statement.
    this.addSql(/* sql */ `
      create table delivery_admission (
        -- One row.
        id boolean primary key default true constraint delivery_admission_one_row check (id),
        state text not null default 'running'
          constraint delivery_admission_state_known check (state in ('running', 'paused', 'draining')),
        changed_at timestamptz not null default now()
      );
      insert into delivery_admission default values;
    `);

    // When the running deliveries were last listed in Temporal, and how far the list was read. One
    // worker lists per interval, and the next one continues from there.
    this.addSql(/* sql */ `
      create table workflow_sweep (
        -- One row.
        id boolean primary key default true constraint workflow_sweep_one_row check (id),
        due_at timestamptz not null default '-infinity',
        -- It continues with the workflows that began before this; null: with the newest.
        place timestamptz
      );
      insert into workflow_sweep default values;
    `);

    // The event and its deliveries are rows of the writer's own transaction: no writer can omit
    // them, and no event exists without its change. Only org_api_backfill writes without events:
    // WHEN sees the writer's role, before the function's own rights apply. For the same reason the
    // function that ends a seat with its grant runs as the writer: as the owner it would create
    // events for a backfill. pg_temp comes last by name; otherwise a writer's temporary table named
    // webhook would suppress its events. For the same reason no other role may attach the trigger
    // functions to its own table, which would create events of changes that never happened. A
    // delivery's time has microseconds, so that two changes within a millisecond are claimed in
    // order.
    this.addSql(/* sql */ `
      create function record_event(org uuid, event_type text, data text) returns void
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        event_id uuid := new_id();
        exactly timestamptz := clock_timestamp();
        moment timestamptz := date_trunc('milliseconds', exactly);
        body text := format('{"id":"%s","type":"%s","createdAt":"%s","organization":{"id":"%s"},"data":%s}',
          event_id, event_type, to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), org, data);
      begin
        with subscribed as (
          select w.id from webhook w
          where w.organization_id = org and w.state <> 'deleted' and event_type = any (w.event_types)
        ), made as (
          insert into event (organization_id, id, type, created_at, body, delivery_count)
          select org, event_id, event_type, moment, body, count(*) from subscribed
        )
        insert into delivery (organization_id, webhook_id, event_id, state, next_attempt_at, created_at)
        select org, s.id, event_id, 'waiting', moment, exactly from subscribed s;
      end $$;

      create function client_grant_event() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if new.status = 'active' then
          perform record_event(new.organization_id, 'client.started', format('{"grantId":"%s","kind":"%s"}', new.id,
            new.kind));
        else
          perform record_event(new.organization_id, 'client.ended',
            format('{"grantId":"%s","kind":"%s","reason":"%s"}', new.id, new.kind, new.end_reason));
        end if;
        return null;
      end $$;
      create trigger client_grant_started_event after insert on client_grant for each row
        when (new.status = 'active' and (new.ends_at is null or new.ends_at > now())
          and current_user <> 'org_api_backfill')
        execute function client_grant_event();
      create trigger client_grant_ended_event after update on client_grant for each row
        when (old.status = 'active' and new.status = 'ended' and current_user <> 'org_api_backfill')
        execute function client_grant_event();

      create function seat_event() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if new.ended_at is null then
          perform record_event(new.organization_id, 'seat.given', format('{"seatId":"%s","grantId":"%s"}', new.id,
            new.grant_id));
        else
          perform record_event(new.organization_id, 'seat.ended',
            format('{"seatId":"%s","grantId":"%s","reason":"%s"}', new.id, new.grant_id, new.end_reason));
        end if;
        return null;
      end $$;
      create trigger seat_given_event after insert on seat for each row
        when (new.ended_at is null and current_user <> 'org_api_backfill') execute function seat_event();
      create trigger seat_ended_event after update on seat for each row
        when (old.ended_at is null and new.ended_at is not null and current_user <> 'org_api_backfill')
          execute function seat_event();
    `);
  }
}
