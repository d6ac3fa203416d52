import { Migration } from '@mikro-orm/migrations';

/**
 * Webhooks, the events that the database itself makes, the obligation to deliver each to every
 * subscriber, and every attempt. Running pods: the reads survive it, they see none of these tables.
 */
export class Webhooks extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create table webhook (
        organization_id uuid not null constraint webhook_organization references organization,
        id uuid not null default new_id() constraint webhook_id_unique unique,
        url text not null constraint webhook_url_length check (length(url) between 1 and 2000),
        description text not null default '',
        event_types text[] not null
          constraint webhook_event_types_not_empty check (cardinality(event_types) > 0)
          constraint webhook_event_types_known check (event_types <@ array['client.started', 'client.ended', 'seat.given', 'seat.ended']),
        state text not null default 'active' constraint webhook_state_known check (state in ('active', 'parked', 'deleted')),
        parked_reason text constraint webhook_parked_reason_known check (parked_reason in ('failing', 'paused')),
        -- Since when nothing but failures came back; null after a 2xx. The five columns below mean something only
        -- while it is set.
        failing_since timestamptz,
        last_failed_at timestamptz,
        -- How long it has failed, without the time in which an attempt was due and none was recorded: an outage of the
        -- service, internal errors. What suspension looks at.
        failing_seconds double precision not null default 0
          constraint webhook_failing_seconds_not_negative check (failing_seconds >= 0),
        -- Until when silence is explained by the schedule: the next due time of its open deliveries, and a margin.
        next_failure_by timestamptz,
        first_failed_event uuid,
        has_failed_twice boolean not null default false,
        -- Since when its receiver has taken seconds to answer; null while it is quick. A worker writes it when that changes.
        slow_since timestamptz,
        -- How often it was resumed, and one. A started delivery of an earlier epoch is to be started again: its workflow
        -- was refused while the webhook was parked. So parking and resuming change this row alone.
        epoch integer not null default 1 constraint webhook_epoch_positive check (epoch > 0),
        -- Since it was resumed or deleted, its open deliveries are to follow: at least until then, for those that were
        -- stored at the same moment, and until none is left. Null: all have.
        follow_until timestamptz,
        -- While it comes back from parking: how many deliveries may be under way; null when all ten places are open again.
        ramp smallint constraint webhook_ramp_positive check (ramp between 1 and 9),
        next_sequence bigint not null default 1,
        -- One of the organization's 20 places.
        slot smallint constraint webhook_slot_of_20 check (slot between 1 and 20),
        created_at timestamptz not null default now(),
        primary key (organization_id, id),
        constraint webhook_deleted_has_no_slot check ((state = 'deleted') = (slot is null)),
        constraint webhook_parked_has_reason check ((state = 'parked') = (parked_reason is not null))
      );
      create unique index webhook_slot_unique on webhook (organization_id, slot) where slot is not null;
      create index webhook_followed on webhook (organization_id, id) where follow_until is not null;
      create index webhook_failing on webhook (failing_since) where failing_since is not null and state = 'active';

      create table webhook_secret (
        organization_id uuid not null,
        webhook_id uuid not null,
        id uuid not null default new_id(),
        sealed bytea not null,
        created_at timestamptz not null default now(),
        -- Null for the newest; a rotated secret signs beside it until then, and is erased afterwards.
        valid_until timestamptz,
        primary key (organization_id, webhook_id, id),
        constraint webhook_secret_webhook foreign key (organization_id, webhook_id) references webhook
      );
      create unique index webhook_secret_one_newest on webhook_secret (organization_id, webhook_id) where valid_until is null;
      create index webhook_secret_expired on webhook_secret (valid_until) where valid_until is not null;

      create table event (
        organization_id uuid not null constraint event_organization references organization,
        id uuid not null,
        type text not null,
        created_at timestamptz not null,
        body text not null,
        -- How many deliveries were made with it: the ledger's independent count.
        obligations integer not null constraint event_obligations_not_negative check (obligations >= 0),
        primary key (organization_id, id)
      );
      create index event_by_time on event (created_at);

      create table delivery (
        organization_id uuid not null,
        webhook_id uuid not null,
        event_id uuid not null,
        state text not null constraint delivery_state_known check (state in ('waiting', 'delivered', 'exhausted', 'cancelled')),
        -- Which round is current: redelivery, resume and repair each begin a new one, and an attempt of an older one is not admitted.
        round integer not null default 1 constraint delivery_round_positive check (round > 0),
        attempts integer not null default 0 constraint delivery_attempts_not_negative check (attempts >= 0),
        -- The webhook's own count of its events, without gaps; given when the relay first claims it.
        sequence bigint,
        next_attempt_at timestamptz,
        -- Held by a relay that is starting its workflow, until then at most.
        leased_until timestamptz,
        -- Whether the workflow of this round has been started.
        started boolean not null default false,
        -- The webhook's epoch when a relay claimed this round.
        epoch integer not null default 1,
        -- Whether it takes one of the webhook's places without an attempt under way: claimed, and not yet admitted.
        claimed boolean not null default false,
        created_at timestamptz not null,
        settled_at timestamptz,
        primary key (organization_id, webhook_id, event_id),
        constraint delivery_event foreign key (organization_id, event_id) references event,
        constraint delivery_webhook foreign key (organization_id, webhook_id) references webhook,
        constraint delivery_waiting_has_next_attempt check ((state = 'waiting') = (next_attempt_at is not null)),
        constraint delivery_settled_has_time check ((state in ('delivered', 'exhausted', 'cancelled')) = (settled_at is not null)),
        constraint delivery_claimed_is_waiting check (not claimed or state = 'waiting')
      );
      create index delivery_unstarted on delivery (organization_id, webhook_id, created_at, event_id) where state = 'waiting' and not started;
      create index delivery_claimed on delivery (organization_id, webhook_id) where claimed;
      create index delivery_open on delivery (organization_id, webhook_id, event_id) where state = 'waiting';
      create index delivery_by_event on delivery (organization_id, event_id);
      create unique index delivery_sequence_unique on delivery (organization_id, webhook_id, sequence) where sequence is not null;

      create table delivery_attempt (
        organization_id uuid not null,
        webhook_id uuid not null,
        event_id uuid not null,
        number integer not null constraint delivery_attempt_number_positive check (number > 0),
        round integer not null,
        -- Whether the schedule had no further attempt after this one: with a failure, the proof that a delivery is exhausted.
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
        answer bytea constraint delivery_attempt_answer_size check (length(answer) <= 16384),
        primary key (organization_id, webhook_id, event_id, number),
        constraint delivery_attempt_delivery foreign key (organization_id, webhook_id, event_id) references delivery,
        constraint delivery_attempt_finished_has_cause check ((finished_at is null) = (cause is null))
      );
      -- One attempt of a delivery at a time, whichever process admits it.
      create unique index delivery_attempt_one_open on delivery_attempt (organization_id, webhook_id, event_id) where finished_at is null;

      -- The attempts under way: each holds a concurrency slot, from its admission to the statement that records how
      -- it ended. The keys prove each bound whichever process admits, and counting what is under way reads these
      -- few rows, however many attempts are kept. No foreign key: it would lock the
      -- webhook's row for each attempt.
      create table concurrency_slot (
        organization_id uuid not null,
        webhook_id uuid not null,
        slot smallint not null constraint concurrency_slot_of_10 check (slot between 1 and 10),
        -- One of its organization's slots, numbered apart for prompt and slow webhooks, and one at its receiving host.
        is_slow boolean not null,
        organization_slot smallint not null constraint concurrency_slot_organization_slot_positive check (organization_slot > 0),
        host text not null,
        host_slot smallint not null constraint concurrency_slot_host_slot_positive check (host_slot > 0),
        event_id uuid not null,
        number integer not null,
        started_at timestamptz not null,
        primary key (organization_id, webhook_id, slot),
        constraint concurrency_slot_one_of_organization unique (organization_id, is_slow, organization_slot),
        constraint concurrency_slot_one_of_host unique (organization_id, host, host_slot)
      -- Rows live for seconds and the table is nearly empty, so a share of it says nothing about dead rows.
      ) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
    `);

    // The event and its obligations are rows of the writer's own transaction: no writer can forget
    // them, and none exists without its change. Silence is for org_api_backfill alone: WHEN sees
    // the writer's role, before the function's own rights apply. For the same reason the function
    // that ends a seat with its grant (0003) runs as the writer: as the owner it would speak for a
    // silent backfill. pg_temp comes last by name, or it would come first: a writer's temporary
    // table named webhook would silence its changes. For the same reason nobody else may attach the
    // trigger functions to a table of theirs, where they would tell of changes that never were. A
    // delivery keeps the microsecond, so that two changes within a millisecond are claimed in their
    // order.
    this.addSql(/* sql */ `
      create function record_event(org uuid, event_type text, data text) returns void language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
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
          insert into event (organization_id, id, type, created_at, body, obligations)
          select org, event_id, event_type, moment, body, count(*) from subscribed
        )
        insert into delivery (organization_id, webhook_id, event_id, state, next_attempt_at, created_at)
        select org, s.id, event_id, 'waiting', moment, exactly from subscribed s;
      end $$;

      create function client_grant_event() returns trigger language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if new.status = 'active' then
          perform record_event(new.organization_id, 'client.started', format('{"grantId":"%s","kind":"%s"}', new.id, new.kind));
        else
          perform record_event(new.organization_id, 'client.ended', format('{"grantId":"%s","kind":"%s","reason":"%s"}', new.id, new.kind, new.end_reason));
        end if;
        return null;
      end $$;
      create trigger client_grant_started_event after insert on client_grant for each row
        when (new.status = 'active' and (new.ends_at is null or new.ends_at > now()) and current_user <> 'org_api_backfill')
        execute function client_grant_event();
      create trigger client_grant_ended_event after update on client_grant for each row
        when (old.status = 'active' and new.status = 'ended' and current_user <> 'org_api_backfill')
        execute function client_grant_event();

      create function seat_event() returns trigger language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if new.ended_at is null then
          perform record_event(new.organization_id, 'seat.given', format('{"seatId":"%s","grantId":"%s"}', new.id, new.grant_id));
        else
          perform record_event(new.organization_id, 'seat.ended',
            format('{"seatId":"%s","grantId":"%s","reason":"%s"}', new.id, new.grant_id, new.end_reason));
        end if;
        return null;
      end $$;
      create trigger seat_given_event after insert on seat for each row
        when (new.ended_at is null and current_user <> 'org_api_backfill') execute function seat_event();
      create trigger seat_ended_event after update on seat for each row
        when (old.ended_at is null and new.ended_at is not null and current_user <> 'org_api_backfill') execute function seat_event();

      grant select, update (ended_at, end_reason) on seat to org_api_worker;
    `);

    this.addSql(/* sql */ `
      grant select, insert, update (url, description, event_types, state, parked_reason, failing_since, ramp, slot, epoch, follow_until)
        on webhook to org_api_console;
      grant select, insert, update (valid_until), delete on webhook_secret to org_api_console;
      grant select on event, delivery, delivery_attempt to org_api_console;
      grant update (state, round, next_attempt_at, leased_until, started, claimed, settled_at) on delivery to org_api_console;

      grant select on event, webhook_secret to org_api_worker;
      grant select, update (state, parked_reason, failing_since, last_failed_at, failing_seconds, next_failure_by, first_failed_event,
        has_failed_twice, ramp, next_sequence, slow_since, follow_until) on webhook to org_api_worker;
      grant select, update (state, round, epoch, attempts, sequence, next_attempt_at, leased_until, started, claimed, settled_at)
        on delivery to org_api_worker;
      grant select, insert, update (finished_at, status, cause, explanation, timings, peer_address, kept_bytes, answer)
        on delivery_attempt to org_api_worker;
      grant select, insert, delete on concurrency_slot to org_api_worker;
      grant delete on webhook_secret to org_api_worker;
    `);
  }
}
