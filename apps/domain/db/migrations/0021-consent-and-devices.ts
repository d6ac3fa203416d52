import { Migration } from '@mikro-orm/migrations';

/**
 * What the console's review found missing: whether a member has ever accepted their membership,
 * several passkey questions of a session at once, and browsers that have signed in before. Running
 * pods: survive it; they go on with factor_challenge, so that a passkey asked by a new pod and
 * answered at an old one is asked again.
 */
export class ConsentAndDevices extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      -- False from an invitation until its person has used the link, also while they are suspended: until then the organization learns nothing of what they do elsewhere, and
      -- suspending and reinstating them makes no member of them. A trigger keeps it, so that the import and the platform cannot forget it.
      alter table membership add column accepted boolean not null default true;
      update membership set accepted = false where status = 'invited';

      create function membership_accepted() returns trigger language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        new.accepted := case new.status
          when 'active' then true
          when 'invited' then false
          else tg_op = 'INSERT' or old.accepted
        end;
        return new;
      end $$;
      create trigger membership_accepted before insert or update of status, accepted on membership
        for each row execute function membership_accepted();

      -- What a session's passkeys were asked; each is answered once. Several at a time, since each tab asks for itself.
      create table passkey_challenge (
        session_id uuid not null constraint passkey_challenge_session references console_session on delete cascade,
        purpose text not null constraint passkey_challenge_purpose_known check (purpose in ('passkey_setup', 'passkey_use')),
        challenge text not null,
        expires_at timestamptz not null,
        -- In the order they were asked.
        place bigint not null generated always as identity,
        primary key (session_id, purpose, challenge)
      );
      create index passkey_challenge_by_end on passkey_challenge (expires_at);

      -- A browser that its person has signed in with, both factors: its failures are counted on their own. Only the hash of its token is kept.
      create table known_browser (
        token_hash bytea primary key constraint known_browser_token_length check (length(token_hash) = 32),
        person_id text collate "C" not null constraint known_browser_sign_in references sign_in on delete cascade,
        created_at timestamptz not null,
        expires_at timestamptz not null constraint known_browser_ends check (expires_at > created_at)
      );
      create index known_browser_by_person on known_browser (person_id, created_at);
      create index known_browser_by_end on known_browser (expires_at);

      grant select, insert, delete on passkey_challenge, known_browser to org_api_console;
      grant select (expires_at), delete on passkey_challenge, known_browser to org_api_worker;
    `);
  }
}
