import { Migration } from '@mikro-orm/migrations';

/**
 * The group roles (no login) of the apps' logins, and two functions that everything else uses.
 * Roles belong to the whole server: another database of it may create the same ones at the same
 * time, so a duplicate is not an error.
 */
export class RolesAndFunctions extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      do $$
      declare
        role_name text;
      begin
        foreach role_name in array array['org_api_read', 'org_api_worker', 'org_api_console', 'org_api_platform',
          'org_api_import', 'org_api_backfill', 'org_api_operator'] loop
          begin
            execute format('create role %I nologin', role_name);
          exception when duplicate_object or unique_violation then
            null;
          end;
        end loop;
        -- A backfill writes as the import, without events.
        begin
          grant org_api_import to org_api_backfill;
        exception when unique_violation then
          null;
        end;
        -- Lets the owner import, also without events; a superuser may already use every role. The platform's login
        -- is no member: who has it would have the tables.
        if not (select rolsuper from pg_roles where rolname = current_user) then
          execute format('grant org_api_backfill to %I', current_user);
        end if;
      end $$;
    `);

    this.addSql(/* sql */ `
      -- PostgreSQL lets every role execute a new function. Here a login executes only what a
      -- migration grants it.
      alter default privileges revoke execute on functions from public;

      revoke create on schema public from public;
      revoke usage on schema public from public;
      grant usage on schema public to org_api_worker, org_api_console, org_api_import, org_api_backfill,
        org_api_operator;

      -- What a key may reach: views, and nothing else. org_api_read has no right in schema public.
      create schema api;
      grant usage on schema api to org_api_read;
    `);

    this.addSql(/* sql */ `
      -- The newest run of the migrator that failed; empty once a later run succeeded.
      create table migration_failure (
        id boolean primary key default true constraint migration_failure_one_row check (id),
        names text[] not null,
        code text,
        failed_at timestamptz not null default now()
      );
    `);

    // Locks of work that no row stands for. No login has a right on them, and functions lock them for
    // the logins that need it. Advisory locks would be open to every login.
    this.addSql(/* sql */ `
      create table named_lock (
        name text primary key
      );
      insert into named_lock values ('audit_partitions'), ('import');

      create function lock_import() returns void
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform from named_lock where name = 'import' for update;
      end $$;
      grant execute on function lock_import to org_api_import;
    `);

    // UUID version 7 in SQL, because PostgreSQL has it only from 18 on: 48 bits of milliseconds,
    // the version, 12 bits of the fraction of the millisecond (RFC 9562, section 6.2, method 3: ids
    // of one connection keep their order of creation), then random bits of a version 4 UUID, whose
    // last 16 digits begin with the variant.
    this.addSql(/* sql */ `
      create function new_id(moment timestamptz default clock_timestamp()) returns uuid
      language sql volatile parallel safe
      begin atomic
        select (
          overlay(lpad(to_hex(floor(extract(epoch from moment) * 4096000)::bigint), 15, '0') placing '7'
            from 13 for 0)
          || substr(gen_random_uuid()::text, 20))::uuid;
      end;
      -- The default of many ids.
      grant execute on function new_id to org_api_worker, org_api_console, org_api_import, org_api_backfill,
        org_api_operator;

      -- Whether a stored time has come: it has passed, or it is further ahead than its rule ever sets
      -- it (\`longest\`), by more than a statement takes. Then the clock was set back since. Null for null.
      create function is_due(moment timestamptz, longest interval) returns boolean language sql stable parallel safe
      return moment <= statement_timestamp() or moment > statement_timestamp() + longest + interval '10 seconds';
      grant execute on function is_due to org_api_worker, org_api_console, org_api_operator;

      -- A date-time as every response and event shows it: UTC, milliseconds, ending in Z.
      create function api.utc(moment timestamptz) returns text language sql stable parallel safe
      return to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
      grant execute on function api.utc to org_api_read, org_api_worker, org_api_console, org_api_import,
        org_api_operator;
    `);
  }
}
