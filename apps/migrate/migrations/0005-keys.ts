import { Migration } from '@mikro-orm/migrations';

/**
 * API keys (their fingerprints only).
 */
export class Keys extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create table api_key (
        id uuid primary key default new_id(),
        organization_id uuid not null constraint api_key_organization references organization,
        creator_id text collate "C" not null constraint api_key_creator references person,
        label text not null default '',
        description text not null default ''
          constraint api_key_description_length check (length(description) <= 500),
        -- Blocks from which the key may be used; none: from every address. A read's statement checks it (0013).
        allowed_addresses cidr[] not null default '{}'
          constraint api_key_allowed_addresses_at_most_20 check (cardinality(allowed_addresses) <= 20),
        fingerprint bytea not null constraint api_key_fingerprint_unique unique
          constraint api_key_fingerprint_length check (length(fingerprint) = 32),
        pepper_version smallint not null,
        hint text not null,
        scopes text[] not null
          constraint api_key_scopes_not_empty check (cardinality(scopes) > 0)
          constraint api_key_scopes_known
            check (scopes <@ array['org.read', 'org.clients.read', 'org.members.read', 'org.analytics.read',
            'org.referrals.manage', 'org.roles.read', 'org.billing.manage']),
        created_at timestamptz not null default now(),
        expires_at timestamptz constraint api_key_expires_after_it_was_made check (expires_at > created_at),
        revoked_at timestamptz,
        -- When the creator's membership in which it was created ended. Its calls get 403 from then
        -- on. Only a trigger writes it.
        creator_left_at timestamptz,
        -- 1 to 25, unique among the organization's valid keys. A valid key always has one; an expired key keeps its
        -- until the next key is created.
        number smallint constraint api_key_number_of_25 check (number between 1 and 25),
        predecessor_id uuid constraint api_key_predecessor references api_key,
        constraint api_key_valid_has_number
          check (number is not null or revoked_at is not null or creator_left_at is not null or expires_at is not null),
        constraint api_key_ended_has_no_number
          check ((revoked_at is null and creator_left_at is null) or number is null)
      );
      -- At most 25 valid keys, for every writer: the index is the proof, not the code that picks a
      -- free number.
      create unique index api_key_number_unique on api_key (organization_id, number) where number is not null;
      create index api_key_by_organization on api_key (organization_id, created_at, id);
    `);

    // Triggers, so that no writer can bypass the rule. A key and its creator's departure lock the
    // membership's row: the later one sees what the earlier one committed. The rules on updates
    // apply to every login, including the owner's.
    this.addSql(/* sql */ `
      create function api_key_creator_is_active() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform from membership m
          where m.organization_id = new.organization_id and m.person_id = new.creator_id
            and m.status = 'active' for share;
        if not found then
          raise exception 'only an active member can create a key'
            using errcode = 'check_violation', constraint = 'api_key_creator_is_active';
        end if;
        return new;
      end $$;
      create trigger api_key_creator_is_active before insert on api_key for each row
        execute function api_key_creator_is_active();

      create function membership_end_ends_keys() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        update api_key k set creator_left_at = clock_timestamp(), number = null
          where k.organization_id = old.organization_id and k.creator_id = old.person_id and k.creator_left_at is null;
        return null;
      end $$;
      create trigger membership_left_ends_keys after update on membership for each row
        when (old.status <> 'left' and new.status = 'left') execute function membership_end_ends_keys();
      create trigger membership_deleted_ends_keys after delete on membership for each row
        execute function membership_end_ends_keys();

      create function api_key_stays_ended() returns trigger
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        raise exception 'a key that has ended cannot come back, and an expiry cannot be put off; create a new key'
          using errcode = 'check_violation', constraint = 'api_key_stays_ended';
      end $$;
      create trigger api_key_stays_ended before update on api_key for each row
        when (old.revoked_at is distinct from new.revoked_at and old.revoked_at is not null
          or old.creator_left_at is distinct from new.creator_left_at and old.creator_left_at is not null
          or old.expires_at is not null and (new.expires_at is null or new.expires_at > old.expires_at))
        execute function api_key_stays_ended();
    `);
  }
}
