import { Migration } from '@mikro-orm/migrations';

/**
 * Single sign-on: the OpenID provider of an organization, the accounts there that sign its members in, and sign-ins
 * that are in progress. A provider proves the first factor only (ADR 0149). Only org_api_console reads these tables.
 */
export class SingleSignOn extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      -- Another issuer or client is another provider: the subjects that it names are not the same accounts. The
      -- subjects and sessions of the old one end with it.
      create table sso_provider (
        id uuid primary key default new_id(),
        organization_id uuid not null constraint sso_provider_organization references organization
          constraint sso_provider_organization_unique unique,
        issuer text not null
          constraint sso_provider_issuer_form check (issuer ~ '^https?://' and length(issuer) <= 500),
        client_id text not null constraint sso_provider_client_id_length check (length(client_id) between 1 and 500),
        secret_sealed bytea not null,
        is_required boolean not null,
        created_at timestamptz not null
      );

      create table sso_subject (
        provider_id uuid not null constraint sso_subject_provider references sso_provider on delete cascade,
        -- As the provider names its account; compared byte by byte, and never an address.
        subject text collate "C" not null constraint sso_subject_length check (length(subject) between 1 and 255),
        person_id text collate "C" not null
          constraint sso_subject_sign_in references sign_in on delete cascade,
        created_at timestamptz not null,
        primary key (provider_id, subject),
        constraint sso_subject_person_unique unique (provider_id, person_id)
      );

      alter table console_session add column provider_id uuid
        constraint console_session_provider references sso_provider on delete cascade;
      create index console_session_by_provider on console_session (provider_id) where provider_id is not null;

      -- Null for a person who has only signed in with a provider.
      alter table sign_in alter column password_hash drop not null;

      -- What the person of a link has chosen instead of a password: none once the provider is gone.
      alter table enrolment add column provider_id uuid
          constraint enrolment_provider references sso_provider on delete set null,
        add column subject text collate "C"
          constraint enrolment_subject_length check (length(subject) between 1 and 255),
        add constraint enrolment_subject_whole check (provider_id is null or subject is not null),
        add constraint enrolment_one_first_factor check (provider_id is null or password_hash is null);
      create index enrolment_by_provider on enrolment (provider_id) where provider_id is not null;

      -- On every write of the status, as end_membership_access: the account of a member who leaves is not linked any
      -- more, so that they, or another person, can link it again. The session stays until it is purged: the audit log
      -- accepts the entry of a member who leaves only from a person with a session.
      create function end_provider_access() returns trigger language plpgsql security definer
      set search_path = pg_catalog, public, pg_temp as $$
      begin
        delete from sso_subject s using sso_provider p
          where p.organization_id = new.organization_id and s.provider_id = p.id and s.person_id = new.person_id;
        update console_session s set expires_at = least(s.expires_at, s.last_seen_at) from sso_provider p
          where p.organization_id = new.organization_id and s.provider_id = p.id and s.person_id = new.person_id;
        return null;
      end $$;
      create trigger end_provider_access after update of status on membership for each row
        when (new.status in ('invited', 'left') and old.status is distinct from new.status)
        execute function end_provider_access();

      -- A sign-in that a browser has begun at a provider, by the SHA-256 of its cookie. The row is deleted before the
      -- answer goes to the provider, so an answer works once.
      create table sso_waiting (
        token_hash bytea primary key constraint sso_waiting_token_length check (length(token_hash) = 32),
        provider_id uuid not null constraint sso_waiting_provider references sso_provider on delete cascade,
        state text not null,
        nonce text not null,
        verifier text not null,
        -- The link that the answer is a choice for, or the session that links its person's account; both null: a
        -- sign-in.
        link_hash bytea constraint sso_waiting_link_length check (length(link_hash) = 32),
        session_id uuid constraint sso_waiting_session references console_session on delete cascade,
        return_to text not null constraint sso_waiting_return_to_length check (length(return_to) <= 2000),
        expires_at timestamptz not null,
        constraint sso_waiting_one_purpose check (link_hash is null or session_id is null)
      );
      create index sso_waiting_by_end on sso_waiting (expires_at);
      create index sso_waiting_by_provider on sso_waiting (provider_id);
      create index sso_waiting_by_session on sso_waiting (session_id) where session_id is not null;

      -- The limit is that of the console (identity/limits.ts): 30 idle minutes end a session. It is a
      -- constant here, so that the worker cannot shorten it.
      create function purge_expired_sign_ins() returns void
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        delete from console_session where expires_at <= now() or last_seen_at <= now() - interval '30 minutes';
        delete from enrolment where expires_at <= now();
        delete from challenge where expires_at <= now();
        delete from known_browser where expires_at <= now();
        delete from sign_in_failure where expire <= extract(epoch from now()) * 1000;
        delete from sso_waiting where expires_at <= now();
      end;

      grant execute on function purge_expired_sign_ins to org_api_worker;

      -- Returns how many sealed texts need which version of WEBHOOK_SECRET_KEYS, for logins that may
      -- read none of them. Null: a form that this release cannot read. Expired rows are not counted.
      create function sealed_versions() returns table (kind text, version integer, count bigint)
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        select s.kind, case when length(s.bytes) < 32 then null
          when get_byte(s.bytes, 0) = 1 then get_byte(s.bytes, 1) * 256 + get_byte(s.bytes, 2) end, count(*)
        from (
          select 'webhook_secret' as kind, sealed as bytes from webhook_secret
            where valid_until is null or valid_until > now()
          union all
          select 'webhook', headers_sealed from webhook where headers_sealed is not null
          union all
          select 'second_factor', totp_sealed from second_factor where totp_sealed is not null
          union all
          select 'challenge', totp_sealed from challenge
            where totp_sealed is not null and expires_at > now()
          union all
          select 'enrolment', totp_sealed from enrolment where totp_sealed is not null and expires_at > now()
          union all
          select 'mail', sealed from mail where sealed is not null
          union all
          select 'sso_provider', secret_sealed from sso_provider
        ) s
        group by 1, 2;
      end;
      grant execute on function sealed_versions to org_api_operator;

      grant select, insert, delete, update (issuer, secret_sealed, is_required) on sso_provider to org_api_console;
      grant select, insert, delete, update (subject, created_at) on sso_subject to org_api_console;
      grant select, insert, delete on sso_waiting to org_api_console;
      grant update (provider_id, subject) on enrolment to org_api_console;
    `);
  }
}
