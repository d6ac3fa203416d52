import { Migration } from '@mikro-orm/migrations';

/**
 * Webhooks and their signing secrets.
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
          constraint webhook_event_types_known
            check (event_types <@ array['client.started', 'client.ended', 'seat.given', 'seat.ended']),
        state text not null default 'active'
          constraint webhook_state_known check (state in ('active', 'parked', 'deleted')),
        parked_reason text constraint webhook_parked_reason_known check (parked_reason in ('failing', 'paused')),
        -- Since when every attempt has failed; null after a 2xx. The five columns below are used
        -- only while it is set.
        failing_since timestamptz,
        last_failed_at timestamptz,
        -- How long it has failed, without the time in which an attempt was due and none was
        -- recorded (an outage of the service, internal errors). Suspension uses it.
        failing_seconds double precision not null default 0
          constraint webhook_failing_seconds_not_negative check (failing_seconds >= 0),
        -- Until when the schedule explains that nothing is recorded: the next due time of its open
        -- deliveries, and a margin.
        next_failure_by timestamptz,
        first_failed_event uuid,
        has_failed_twice boolean not null default false,
        -- Since when its receiver has taken seconds to answer; null while it is fast. A worker
        -- writes it when that changes.
        slow_since timestamptz,
        -- One more than the number of times it was resumed. A started delivery of an earlier epoch
        -- is started again: its workflow was refused while the webhook was parked. So parking and
        -- resuming change this row alone.
        epoch integer not null default 1 constraint webhook_epoch_positive check (epoch > 0),
        -- After it is resumed or deleted, its open deliveries are updated: at least until this
        -- time, which covers those stored at the same moment, and until none is left. Null: all
        -- are.
        follow_until timestamptz,
        -- While it resumes: how many deliveries may be in progress; null when all ten slots are
        -- open again.
        ramp smallint constraint webhook_ramp_positive check (ramp between 1 and 9),
        next_sequence bigint not null default 1,
        -- One of the organization's 20 slots.
        slot smallint constraint webhook_slot_of_20 check (slot between 1 and 20),
        -- Result of the last signature check; null until its owner requests one, and again once the
        -- URL or the secret has changed.
        signature_result text constraint webhook_signature_result_known
          check (signature_result in ('verified', 'accepts_bad_signatures', 'refuses_good_signatures', 'no_answer')),
        signature_checked_at timestamptz,
        -- The object of a Kubernetes cluster that alone changes this webhook: its kind, namespace
        -- and name, and its id. Null: the organization's members change it.
        managed_by text,
        managed_uid uuid,
        created_at timestamptz not null default now(),
        primary key (organization_id, id),
        constraint webhook_signature_result_has_time
          check ((signature_result is null) = (signature_checked_at is null)),
        constraint webhook_managed_has_both check ((managed_by is null) = (managed_uid is null)),
        constraint webhook_deleted_has_no_slot check ((state = 'deleted') = (slot is null)),
        constraint webhook_parked_has_reason check ((state = 'parked') = (parked_reason is not null))
      );
      create unique index webhook_slot_unique on webhook (organization_id, slot) where slot is not null;
      -- A restarted operator finds the webhook that it created; two concurrent ones create one.
      create unique index webhook_managed_unique on webhook (managed_uid)
        where managed_uid is not null and state <> 'deleted';
      create index webhook_followed on webhook (organization_id, id) where follow_until is not null;
      create index webhook_parked on webhook (parked_reason) where state = 'parked';
      create index webhook_failing on webhook (failing_since) where failing_since is not null and state = 'active';

      create table webhook_secret (
        organization_id uuid not null,
        webhook_id uuid not null,
        id uuid not null default new_id(),
        sealed bytea not null,
        created_at timestamptz not null default now(),
        -- Null for the newest; a rotated secret signs beside it until then, and is erased
        -- afterwards.
        valid_until timestamptz,
        primary key (organization_id, webhook_id, id),
        constraint webhook_secret_webhook foreign key (organization_id, webhook_id) references webhook
      );
      create unique index webhook_secret_one_newest on webhook_secret (organization_id, webhook_id)
        where valid_until is null;
      create index webhook_secret_expired on webhook_secret (valid_until) where valid_until is not null;
    `);

    // Functions delete what has expired, because the worker's login may delete no other row.
    this.addSql(/* sql */ `
      create function purge_expired_secrets() returns void
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        delete from webhook_secret where valid_until <= clock_timestamp();
      end;
    `);
  }
}
