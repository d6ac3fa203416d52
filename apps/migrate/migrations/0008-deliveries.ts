import { Migration } from '@mikro-orm/migrations';

/** Events, a delivery of each to every subscribed webhook, attempts, and requests to redeliver. */
export class Deliveries extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create table event (
        organization_id uuid not null constraint event_organization references organization,
        id uuid not null,
        type text not null,
        -- The seat that it is about, or the grant when it is about no seat.
        subject_id uuid,
        -- Of each event later than of the one before of its subject.
        created_at timestamptz not null,
        body text not null,
        -- How many deliveries were created with it: the ledger's independent count.
        delivery_count integer not null constraint event_delivery_count_not_negative check (delivery_count >= 0),
        -- Counted in the ledger's sums by day.
        rolled_up boolean not null default false,
        primary key (organization_id, id)
      );
      create index event_by_time on event (created_at);
      create index event_by_subject on event (organization_id, subject_id, created_at) where subject_id is not null;
      create index event_not_rolled_up on event (created_at) include (delivery_count) where not rolled_up;
      -- An event is stored whether a webhook subscribes to it or not.
      create index event_without_deliveries on event (created_at) where delivery_count = 0;

      create table delivery (
        organization_id uuid not null,
        webhook_id uuid not null,
        event_id uuid not null,
        -- The event's. A webhook may get the events of one in order.
        subject_id uuid,
        -- \`queued\`: waits here for a concurrency slot, from \`due_at\` on. \`running\`: a workflow
        -- attempts it, or sleeps until \`due_at\`. \`blocked\`: an earlier one of the same subject is open.
        state text not null default 'queued' constraint delivery_state_known
          check (state in ('queued', 'running', 'blocked', 'delivered', 'exhausted', 'cancelled')),
        -- The number of the current run, counted by each claim. A workflow of an older one gets no
        -- attempt.
        run integer not null default 0 constraint delivery_run_not_negative check (run >= 0),
        -- Its position in the schedule: failed and lost attempts since the event or the last redelivery.
        failures smallint not null default 0 constraint delivery_failures_not_negative check (failures >= 0),
        -- The highest number of its attempts that have ended.
        attempts integer not null default 0 constraint delivery_attempts_not_negative check (attempts >= 0),
        -- The sequence number in the webhook, without gaps; assigned by the first claim.
        sequence bigint,
        -- When the next attempt is due.
        due_at timestamptz,
        created_at timestamptz not null,
        settled_at timestamptz,
        -- Counted in the ledger's sums by day.
        rolled_up boolean not null default false,
        primary key (organization_id, webhook_id, event_id),
        constraint delivery_event foreign key (organization_id, event_id) references event,
        constraint delivery_webhook foreign key (organization_id, webhook_id) references webhook,
        constraint delivery_open_is_due check ((state in ('queued', 'running', 'blocked')) = (due_at is not null)),
        constraint delivery_settled_has_time
          check ((state in ('delivered', 'exhausted', 'cancelled')) = (settled_at is not null)),
        constraint delivery_rolled_up_is_settled check (not rolled_up or settled_at is not null)
      );
      -- The order in which a webhook's deliveries are claimed.
      create index delivery_queued on delivery (organization_id, webhook_id, created_at, event_id)
        where state = 'queued';
      -- Open deliveries of one webhook and subject in their order; and those that wait, in the order
      -- in which they are looked up. No other index has that order, so none is read instead.
      create index delivery_by_subject on delivery (organization_id, webhook_id, subject_id, created_at, event_id)
        where state in ('queued', 'running', 'blocked') and subject_id is not null;
      create index delivery_blocked on delivery (webhook_id, event_id) where state = 'blocked';
      -- Runs that are late, oldest first; and those of one webhook.
      create index delivery_running on delivery (due_at) where state = 'running';
      create index delivery_running_of_webhook on delivery (organization_id, webhook_id, due_at)
        where state = 'running';
      -- The second condition is always true. It keeps statements that do not name it (isOpenSql)
      -- from this index: after many deliveries were settled, the claim and the poll read all
      -- queued deliveries with it, because its empty pages were fewer than those of
      -- delivery_queued.
      create index delivery_open on delivery (webhook_id, event_id)
        where state in ('queued', 'running', 'blocked') and run >= 0;
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
        -- Created by the process that asks for the attempt, so a repeated request finds it.
        id uuid not null,
        number integer not null constraint delivery_attempt_number_positive check (number > 0),
        run integer not null,
        -- Whether its failure ends the schedule, and is the proof that the delivery is exhausted.
        ends_schedule boolean not null,
        signed_with uuid[] not null,
        started_at timestamptz not null,
        finished_at timestamptz,
        status smallint,
        cause text,
        explanation text,
        timings jsonb,
        peer_address inet,
        kept_bytes integer,
        -- By name; null for an attempt that was lost. Signatures are not secret: the receiver got them,
        -- and none is valid for more than 5 minutes. A custom header has null for its value.
        headers json,
        response bytea constraint delivery_attempt_response_size check (length(response) <= 16384),
        -- The \`Content-Encoding\` that the receiver named although none is accepted.
        response_encoding text,
        primary key (organization_id, webhook_id, event_id, id),
        constraint delivery_attempt_delivery foreign key (organization_id, webhook_id, event_id) references delivery,
        constraint delivery_attempt_finished_has_cause check ((finished_at is null) = (cause is null))
      );
      -- The condition is always true, and keeps every statement that does not name it from this
      -- index: without statistics the planner took it for the attempts of one delivery, instead of
      -- the primary key, and read all attempts of the webhook for each (11 s for a ledger of
      -- 5,000).
      create index delivery_attempt_lately on delivery_attempt (organization_id, webhook_id, started_at)
        where number > 0;

      -- The deliveries that are attempted, or claimed and about to be: each has one row, from its
      -- claim or admission to the statement that records how it ended. The key proves that a delivery has one
      -- attempt at a time, and the bounds are counted here, in few rows, however many attempts are kept. No foreign
      -- key: it would lock the webhook's row for each attempt.
      create table slot (
        organization_id uuid not null,
        webhook_id uuid not null,
        event_id uuid not null,
        -- The run that it belongs to.
        run integer not null,
        host text not null,
        -- Whether it counts for the degraded webhooks of its organization.
        degraded boolean not null,
        -- Both null until the attempt is admitted.
        attempt_id uuid,
        admitted_at timestamptz,
        -- Afterwards it expires: its process has died, or is late.
        until timestamptz not null,
        primary key (organization_id, webhook_id, event_id),
        constraint slot_admitted_has_both check ((attempt_id is null) = (admitted_at is null))
      -- Rows live for seconds and the table is nearly empty, so a share of it says nothing about
      -- dead rows.
      ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
    `);

    // A row is the request and its progress. Any worker does the next page, so a request needs
    // neither Temporal nor a process that stays alive.
    this.addSql(/* sql */ `
      create table redelivery (
        organization_id uuid not null,
        id uuid not null default new_id() constraint redelivery_id_unique unique,
        webhook_id uuid not null,
        -- Either the events of a range, or all that failed since a moment.
        range_from timestamptz,
        range_to timestamptz,
        failed_since timestamptz,
        state text not null default 'requested'
          constraint redelivery_state_known check (state in ('requested', 'running', 'done', 'cancelled', 'ended')),
        -- Why it ended before it had scanned all.
        end_reason text
          constraint redelivery_end_reason_known
            check (end_reason in ('webhook_paused', 'webhook_suspended', 'webhook_deleted')),
        -- Null: an operator.
        requested_by text constraint redelivery_requester references person,
        requested_at timestamptz not null default now(),
        cancel_requested_at timestamptz,
        finished_at timestamptz,
        -- When the next page is due, and the event after which it begins; null before the first.
        due_at timestamptz not null default now(),
        reached uuid,
        seen_all boolean not null default false,
        -- Deliveries scanned; those that the selection includes; put into the queue.
        seen integer not null default 0,
        matched integer not null default 0,
        queued integer not null default 0,
        primary key (organization_id, id),
        constraint redelivery_webhook foreign key (organization_id, webhook_id) references webhook,
        constraint redelivery_one_selection
          check ((range_from is null) = (range_to is null) and (range_from is null) <> (failed_since is null)),
        constraint redelivery_range_not_empty check (range_from < range_to),
        constraint redelivery_counts_add_up check (queued >= 0 and queued <= matched and matched <= seen),
        constraint redelivery_finished_has_time
          check ((state in ('done', 'cancelled', 'ended')) = (finished_at is not null)),
        constraint redelivery_ended_has_reason check ((state = 'ended') = (end_reason is not null)),
        constraint redelivery_cancelled_was_requested check (state <> 'cancelled' or cancel_requested_at is not null),
        constraint redelivery_done_saw_all check (state <> 'done' or seen_all)
      );
      -- One at a time for a webhook: two together would exceed the rate of each. Workers also scan
      -- this index.
      create unique index redelivery_one_open on redelivery (organization_id, webhook_id)
        where state in ('requested', 'running');
      create index redelivery_by_webhook on redelivery (organization_id, webhook_id, id);
    `);

    // The region's switch: whether it sends deliveries. Each admission of an attempt reads it.
    this.addSql(/* sql */ `
      create table delivery_switch (
        -- One row.
        id boolean primary key default true constraint delivery_switch_one_row check (id),
        state text not null default 'running'
          constraint delivery_switch_state_known check (state in ('running', 'paused', 'draining')),
        changed_at timestamptz not null default now()
      );
      insert into delivery_switch default values;
    `);

    // The event and its deliveries are rows of the writer's own transaction: no writer can omit
    // them, and no event exists without its change. Only org_api_backfill writes without events:
    // WHEN sees the writer's role, before the function's own rights apply. For the same reason the
    // function that ends a seat with its grant runs as the writer: as the owner it would create
    // events for a backfill. pg_temp comes last by name; otherwise a writer's temporary table named
    // webhook would suppress its events. For the same reason no other role may attach the trigger
    // functions to its own table, which would create events of changes that never happened. A
    // delivery's time has microseconds, so that two changes within a millisecond are claimed in
    // order. Writers of one subject (seat or grant) wait for each other on its row, so that their
    // order is that of their commits. It is also that of the events' times and ids, whatever the
    // clock says: an event is later than the last one of its subject, by a microsecond at least. A
    // settlement that has not committed yet is not seen here, and does not see the new row:
    // `unblockSql` finds such a row. An event waits for no event of a type that the webhook does not
    // get any more.
    this.addSql(/* sql */ `
      create function record_event(org uuid, event_type text, data text, subject uuid default null,
        except_webhook uuid default null) returns void
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        due timestamptz := clock_timestamp();
        moment timestamptz := greatest(due, (
          select max(e.created_at) + interval '1 microsecond' from event e
          where e.organization_id = org and e.subject_id = subject));
        event_id uuid := new_id(moment);
        body text := format('{"id":"%s","type":"%s","createdAt":"%s","organization":{"id":"%s"},"data":%s}',
          event_id, event_type, to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), org, data);
      begin
        with subscribed as (
          select w.id, w.ordered, w.event_types from webhook w
          where w.organization_id = org and w.state <> 'deleted' and event_type = any (w.event_types)
            and w.id is distinct from except_webhook
        ), made as (
          insert into event (organization_id, id, type, subject_id, created_at, body, delivery_count)
          select org, event_id, event_type, subject, moment, body, count(*) from subscribed
        )
        insert into delivery (organization_id, webhook_id, event_id, subject_id, state, due_at, created_at)
        select org, s.id, event_id, subject, case when s.ordered and exists (
            select from delivery d where d.organization_id = org and d.webhook_id = s.id and d.subject_id = subject
              and d.state in ('queued', 'running', 'blocked') and (
                select e.type from event e where e.organization_id = org and e.id = d.event_id) = any (s.event_types))
          then 'blocked' else 'queued' end, due, moment
        from subscribed s;
      end $$;

      create function client_grant_event() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if new.status = 'active' then
          perform record_event(new.organization_id, 'client.started', format('{"grantId":"%s","kind":"%s"}', new.id,
            new.kind), new.id);
        else
          perform record_event(new.organization_id, 'client.ended',
            format('{"grantId":"%s","kind":"%s","reason":"%s"}', new.id, new.kind, new.end_reason), new.id);
        end if;
        return null;
      end $$;
      create trigger client_grant_started_event after insert on client_grant for each row
        when (new.status = 'active' and (new.ends_at is null or new.ends_at > now())
          and current_user <> 'org_api_backfill')
        execute function client_grant_event();
      -- Also when its end has passed: access that began and ended while no worker ran has both events.
      create trigger client_grant_begun_event after update on client_grant for each row
        when (old.status = 'scheduled' and new.status = 'active' and current_user <> 'org_api_backfill')
        execute function client_grant_event();
      create trigger client_grant_ended_event after update on client_grant for each row
        when (old.status = 'active' and new.status = 'ended' and current_user <> 'org_api_backfill')
        execute function client_grant_event();

      create function seat_event() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if new.ended_at is null then
          perform record_event(new.organization_id, 'seat.given', format('{"seatId":"%s","grantId":"%s"}', new.id,
            new.grant_id), new.id);
        else
          perform record_event(new.organization_id, 'seat.ended',
            format('{"seatId":"%s","grantId":"%s","reason":"%s"}', new.id, new.grant_id, new.end_reason), new.id);
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
