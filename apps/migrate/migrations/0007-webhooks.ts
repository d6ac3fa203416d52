import { Migration } from '@mikro-orm/migrations';

/**
 * Webhooks and their signing secrets.
 */
export class Webhooks extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      -- Whether these are names of custom headers that a webhook may have: at most 10 tokens of RFC 9110, each once
      -- whatever its case, and none that the service writes, that frames a message, belongs to a connection, or says
      -- where a request came from.
      create function are_header_names(names text[]) returns boolean language sql immutable parallel safe
      return cardinality(names) <= 10 and cardinality(names) = (
        select count(distinct n.name) from (
          select lower(u.name collate "C") as name from unnest(names) as u (name)) n
        where n.name ~ '^[!#$%&''*+.^_\`|~0-9a-z-]{1,100}$' and n.name !~ '^(content-|proxy-|webhook-|x-forwarded-)'
          and n.name <> all (array['accept', 'accept-encoding', 'connection', 'expect', 'forwarded', 'host',
            'http2-settings', 'keep-alive', 'service-signature', 'te', 'trailer', 'transfer-encoding', 'upgrade',
            'user-agent', 'via']));

      create table webhook (
        organization_id uuid not null constraint webhook_organization references organization,
        id uuid not null default new_id() constraint webhook_id_unique unique,
        url text not null constraint webhook_url_length check (length(url) between 1 and 2000),
        description text not null default '',
        event_types text[] not null
          constraint webhook_event_types_not_empty check (cardinality(event_types) > 0)
          constraint webhook_event_types_known
            check (event_types <@ array['client.started', 'client.ended', 'seat.given', 'seat.ended',
              'webhook.failing', 'webhook.suspended', 'key.expiring']),
        -- Whether an event waits until the one before of the same subject is settled.
        ordered boolean not null default true,
        -- Headers that its owner adds to every request, with their values sealed, and their names.
        header_names text[] not null default '{}'
          constraint webhook_header_names_allowed check (are_header_names(header_names)),
        headers_sealed bytea constraint webhook_headers_size check (length(headers_sealed) <= 16384),
        -- At most so many posts in a second, and a tenth of them and one more at once; null: no bound.
        posts_per_second smallint
          constraint webhook_posts_per_second_of_100 check (posts_per_second between 1 and 100),
        state text not null default 'active'
          constraint webhook_state_known check (state in ('active', 'paused', 'suspended', 'deleted')),
        -- \`failures\`: its receiver accepted nothing; \`gone\`: it answered 410.
        suspended_reason text
          constraint webhook_suspended_reason_known check (suspended_reason in ('failures', 'gone')),
        -- Since when it has this state.
        state_at timestamptz not null default clock_timestamp(),
        -- The receiving host of the URL, without its port.
        host text not null generated always as
          (coalesce(substring(lower(url), '^[a-z]+://(?:[^/?#@]*@)?(\\[[^]]*\\]|[^/:?#]+)'), '')) stored,
        -- 1 to 20, unique among the organization's webhooks that are not deleted.
        number smallint constraint webhook_number_of_20 check (number between 1 and 20),
        -- Result of the last signature check; null until its owner requests one, and again once the
        -- URL or the secret has changed.
        signature_result text constraint webhook_signature_result_known
          check (signature_result in ('verified', 'accepts_bad_signatures', 'rejects_good_signatures', 'no_response')),
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
        constraint webhook_deleted_has_no_number check ((state = 'deleted') = (number is null)),
        constraint webhook_headers_have_names check ((header_names = '{}') = (headers_sealed is null)),
        constraint webhook_deleted_has_no_headers check (state <> 'deleted' or headers_sealed is null),
        constraint webhook_suspended_has_reason check ((state = 'suspended') = (suspended_reason is not null))
      );
      create unique index webhook_number_unique on webhook (organization_id, number) where number is not null;
      -- A restarted operator finds the webhook that it created; two concurrent ones create one.
      create unique index webhook_managed_unique on webhook (managed_uid)
        where managed_uid is not null and state <> 'deleted';
      create index webhook_holding on webhook (state) where state in ('paused', 'suspended');
      -- Those that were paused, suspended or deleted lately: their open deliveries are moved.
      create index webhook_inactive on webhook (state_at) where state <> 'active';

      -- What delivery statements know of a webhook's receiver. They only read \`webhook\`, so a
      -- transaction that holds a row there stops no delivery.
      create table receiver (
        organization_id uuid not null,
        webhook_id uuid not null,
        -- How many deliveries may be attempted at once. Each outcome adapts it: \`concurrencyAfter\`.
        concurrency smallint not null default 10
          constraint receiver_concurrency_of_10 check (concurrency between 1 and 10),
        -- Since when every attempt has failed; null after a 2xx.
        failing_since timestamptz,
        -- Deliveries whose last attempt failed, since the last 2xx.
        exhausted_in_row smallint not null default 0
          constraint receiver_exhausted_in_row_not_negative check (exhausted_in_row >= 0),
        -- Nothing is sent until then: the receiver said so with \`Retry-After\`.
        retry_after_until timestamptz,
        -- With a bound of posts a second: when as many may be sent at once as ever. Each admitted attempt moves it on.
        posts_full_at timestamptz,
        -- When it answered 410: nothing is sent until the webhook is resumed.
        gone_at timestamptz,
        -- When all this was reset: an attempt that was admitted before changes none of it.
        reset_at timestamptz not null default clock_timestamp(),
        next_sequence bigint not null default 1 constraint receiver_next_sequence_positive check (next_sequence > 0),
        primary key (organization_id, webhook_id),
        constraint receiver_webhook foreign key (organization_id, webhook_id) references webhook
      ) with (fillfactor = 50);
      create index receiver_failing on receiver (failing_since)
        where failing_since is not null or gone_at is not null;

      -- One row per organization with webhooks. A process that assigns concurrency slots of an
      -- organization locks it, so that no two count the same slots. No advisory lock: each login could hold one.
      create table slot_lock (
        organization_id uuid primary key constraint slot_lock_organization references organization
      );

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

    // A webhook that becomes active again, or has another URL, is tried with one delivery first, and
    // former failures do not count.
    this.addSql(/* sql */ `
      create function add_receiver() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        insert into receiver (organization_id, webhook_id) values (new.organization_id, new.id);
        insert into slot_lock (organization_id) values (new.organization_id) on conflict do nothing;
        return null;
      end $$;
      create trigger webhook_has_receiver after insert on webhook for each row execute function add_receiver();

      create function reset_receiver() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if new.state <> old.state then new.state_at := clock_timestamp(); end if;
        if new.url <> old.url or new.state = 'active' and old.state <> 'active' then
          update receiver r set concurrency = 1, failing_since = null, exhausted_in_row = 0, retry_after_until = null,
            gone_at = null, reset_at = clock_timestamp()
          where r.organization_id = new.organization_id and r.webhook_id = new.id;
        end if;
        return new;
      end $$;
      create trigger webhook_resets_receiver before update on webhook for each row
        when (new.state <> old.state or new.url <> old.url) execute function reset_receiver();
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
