import { Migration } from '@mikro-orm/migrations';

/**
 * How people sign in to the console: password, second factors, recovery codes, sessions, one-time
 * links, and the attempts that are counted. Credentials are hashed or sealed: tokens and codes as
 * SHA-256 (they are random), passwords as argon2id. Only org_api_console reads these tables; the
 * worker purges what has expired.
 */
export class Identity extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      -- Created when a person has enrolled; before that, they can have no session.
      create table sign_in (
        person_id text collate "C" primary key constraint sign_in_person references person,
        email text not null constraint sign_in_email_form check (email like '%_@_%' and length(email) <= 254)
          -- Printable ASCII without capitals: the one form in which addresses are compared.
          constraint sign_in_email_canonical check (email collate "C" ~ '^[!-@\\[-~]+$'),
        password_hash text not null constraint sign_in_password_is_argon2id check (password_hash like '$argon2id$%'),
        password_changed_at timestamptz not null,
        created_at timestamptz not null
      );
      create unique index sign_in_email_unique on sign_in (email);

      create table second_factor (
        id uuid primary key default new_id(),
        person_id text collate "C" not null constraint second_factor_sign_in references sign_in,
        kind text not null constraint second_factor_kind_known check (kind in ('totp', 'passkey')),
        name text not null constraint second_factor_name_length check (length(name) between 1 and 100),
        created_at timestamptz not null,
        last_used_at timestamptz,
        -- Of an authenticator app: its secret, and the last time step whose code was accepted; no
        -- code works twice.
        totp_sealed bytea,
        totp_last_step bigint,
        -- Of a passkey.
        credential_id text constraint second_factor_credential_unique unique,
        public_key bytea,
        counter bigint,
        transports text[],
        constraint second_factor_totp_whole
          check ((kind = 'totp') = (totp_sealed is not null) and (kind = 'totp') = (totp_last_step is not null)),
        constraint second_factor_passkey_whole
          check ((kind = 'passkey') = (credential_id is not null) and (kind = 'passkey') = (public_key is not null)
          and (kind = 'passkey') = (counter is not null) and (kind = 'passkey') = (transports is not null))
      );
      create index second_factor_by_person on second_factor (person_id, created_at, id);

      create table recovery_code (
        person_id text collate "C" not null constraint recovery_code_sign_in references sign_in,
        code_hash bytea not null constraint recovery_code_hash_length check (length(code_hash) = 32),
        created_at timestamptz not null,
        used_at timestamptz,
        primary key (person_id, code_hash)
      );

      create table console_session (
        id uuid primary key default new_id(),
        token_hash bytea not null constraint console_session_token_unique unique
          constraint console_session_token_length check (length(token_hash) = 32),
        person_id text collate "C" not null constraint console_session_sign_in references sign_in,
        state text not null constraint console_session_state_known check (state in ('password_passed', 'full')),
        created_at timestamptz not null,
        last_seen_at timestamptz not null,
        expires_at timestamptz not null,
        second_factor_at timestamptz,
        address inet,
        user_agent text not null constraint console_session_user_agent_length check (length(user_agent) <= 300),
        constraint console_session_full_has_second_factor check ((state = 'full') = (second_factor_at is not null)),
        -- Equal when its person loses access before it is used again.
        constraint console_session_ends check (expires_at >= created_at)
      );
      create index console_session_by_person on console_session (person_id, created_at, id);
      create index console_session_by_end on console_session (expires_at);

      -- A challenge of a session, or an app that it sets up, deleted by the first response that is
      -- accepted. A newer one for the same purpose replaces the older.
      create table challenge (
        session_id uuid not null constraint challenge_session references console_session on delete cascade,
        purpose text not null
          constraint challenge_purpose_known check (purpose in ('totp_setup', 'passkey_setup', 'passkey_use')),
        expires_at timestamptz not null,
        challenge text,
        totp_sealed bytea,
        primary key (session_id, purpose),
        constraint challenge_whole check ((purpose = 'totp_setup') = (totp_sealed is not null)
          and (purpose = 'totp_setup') = (challenge is null))
      );
      create index challenge_by_end on challenge (expires_at);

      -- A one-time link, and the choices of its person so far. A newer link of a membership
      -- replaces the older.
      create table enrolment (
        organization_id uuid not null,
        person_id text collate "C" not null,
        token_hash bytea not null
          constraint enrolment_token_unique unique constraint enrolment_token_length check (length(token_hash) = 32),
        kind text not null constraint enrolment_kind_known check (kind in ('invite', 'recover')),
        email text not null constraint enrolment_email_form check (email like '%_@_%' and length(email) <= 254)
          constraint enrolment_email_canonical check (email collate "C" ~ '^[!-@\\[-~]+$'),
        created_at timestamptz not null,
        expires_at timestamptz not null constraint enrolment_ends check (expires_at > created_at),
        -- Null: an operator.
        invited_by text,
        password_hash text constraint enrolment_password_is_argon2id check (password_hash like '$argon2id$%'),
        totp_sealed bytea,
        challenge text,
        primary key (organization_id, person_id),
        constraint enrolment_membership
          foreign key (organization_id, person_id) references membership on delete cascade,
        constraint enrolment_recovery_by_operator check (kind <> 'recover' or invited_by is null)
      );
      create index enrolment_by_end on enrolment (expires_at);

      -- Which organizations have confirmed a person's sign-in: by their own link, once used, or by
      -- an operator. An active membership opens an organization's console only with it. No import
      -- and no platform login writes here.
      create table sign_in_confirmation (
        person_id text collate "C" not null
          constraint sign_in_confirmation_sign_in references sign_in on delete cascade,
        organization_id uuid not null,
        confirmed_at timestamptz not null,
        confirmed_by text not null
          constraint sign_in_confirmation_source_known check (confirmed_by in ('link', 'orgctl')),
        primary key (person_id, organization_id),
        constraint sign_in_confirmation_membership foreign key (organization_id, person_id)
          references membership on delete cascade
      );

      -- How many sign-in failures count for a subject, a network or both, until "expire" (ms). The key is a
      -- SHA-256 in hex, so that the counts do not become a list of addresses. The columns are those
      -- of rate-limiter-flexible, in its order.
      create table sign_in_failure (
        key text collate "C" primary key constraint sign_in_failure_key_is_sha256 check (key ~ '^[0-9a-f]{64}$'),
        points integer not null,
        expire bigint not null
      );
      create index sign_in_failure_by_end on sign_in_failure (expire);

      -- A browser that its person has signed in with, both factors: its failures are counted
      -- separately. Only the hash of its token is stored.
      create table known_browser (
        token_hash bytea primary key constraint known_browser_token_length check (length(token_hash) = 32),
        person_id text collate "C" not null constraint known_browser_sign_in references sign_in on delete cascade,
        created_at timestamptz not null,
        expires_at timestamptz not null constraint known_browser_ends check (expires_at > created_at)
      );
      create index known_browser_by_person on known_browser (person_id, created_at);
      create index known_browser_by_end on known_browser (expires_at);

      -- Submitted forms, so that a double click submits a form once.
      create table form_use (
        session_id uuid not null constraint form_use_session references console_session on delete cascade,
        form_id uuid not null,
        primary key (session_id, form_id)
      );
    `);

    // Two concurrent removals would each see the other's factor; with the lock, the second one
    // waits and checks again.
    this.addSql(/* sql */ `
      create function second_factor_remains() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform from sign_in s where s.person_id = old.person_id for no key update;
        if found and not exists (select from second_factor f where f.person_id = old.person_id) then
          raise exception 'a person who signs in has a second factor'
            using errcode = 'check_violation', constraint = 'second_factor_remains';
        end if;
        return null;
      end $$;
      create constraint trigger second_factor_remains after delete on second_factor deferrable initially deferred
        for each row execute function second_factor_remains();

      -- On every write of the status, including those of the import and the platform: links to a
      -- member end with their suspension and removal, links that they created with their removal,
      -- and a person who returns must be confirmed again.
      create function end_membership_access() returns trigger language plpgsql security definer
      set search_path = pg_catalog, public, pg_temp as $$
      begin
        if new.status in ('suspended', 'left') then
          delete from enrolment e where e.organization_id = new.organization_id
            and (e.person_id = new.person_id or new.status = 'left' and e.invited_by = new.person_id);
        end if;
        if new.status in ('invited', 'left') then
          delete from sign_in_confirmation c
          where c.person_id = new.person_id and c.organization_id = new.organization_id;
        end if;
        return null;
      end $$;
      create trigger end_membership_access after update of status on membership for each row
        when (new.status <> 'active' and old.status is distinct from new.status)
        execute function end_membership_access();
    `);
  }
}
