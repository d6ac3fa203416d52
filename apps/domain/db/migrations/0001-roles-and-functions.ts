import { Migration } from '@mikro-orm/migrations';

/**
 * The group roles (no login) that the apps' logins belong to, and two functions that everything
 * else uses. Roles belong to the whole server: another database of it may create the same ones at
 * the same moment, so a duplicate is not an error. Running pods: none can exist before this one.
 */
export class RolesAndFunctions extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      do $$
      declare
        role_name text;
      begin
        foreach role_name in array array['org_api_read', 'org_api_worker', 'org_api_console', 'org_api_platform', 'org_api_backfill'] loop
          begin
            execute format('create role %I nologin', role_name);
          exception when duplicate_object or unique_violation then
            null;
          end;
        end loop;
        -- A backfill is the platform writing in silence.
        begin
          grant org_api_platform to org_api_backfill;
        exception when unique_violation then
          null;
        end;
        -- So that the owner can import in silence; a superuser may act as anybody already.
        if not (select rolsuper from pg_roles where rolname = current_user) then
          execute format('grant org_api_backfill to %I', current_user);
        end if;
      end $$;
    `);

    this.addSql(/* sql */ `
      -- PostgreSQL lets everybody execute a new function; here a login executes what a migration names for it, and no more.
      alter default privileges revoke execute on functions from public;

      revoke create on schema public from public;
      revoke usage on schema public from public;
      grant usage on schema public to org_api_worker, org_api_console, org_api_platform, org_api_backfill;

      -- What a key may reach: views, and nothing else (0006). org_api_read has no right in schema public.
      create schema api;
      grant usage on schema api to org_api_read;
    `);

    // UUID version 7 in SQL, because PostgreSQL has its own only from 18 on: 48 bits of
    // milliseconds, then random bits. gen_random_uuid() is version 4; bits 52 and 53 turn its 0100
    // into 0111.
    this.addSql(/* sql */ `
      create function new_id() returns uuid language sql volatile parallel safe
      begin atomic
        select encode(
          set_bit(set_bit(
            overlay(uuid_send(gen_random_uuid())
              placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
              from 1 for 6),
            52, 1), 53, 1),
          'hex')::uuid;
      end;
      -- The default of many ids.
      grant execute on function new_id to org_api_worker, org_api_console, org_api_platform, org_api_backfill;

      -- A date-time as every answer and event shows it: UTC, milliseconds, ending in Z.
      create function api.utc(moment timestamptz) returns text language sql stable parallel safe
      return to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
      grant execute on function api.utc to org_api_read, org_api_worker, org_api_console, org_api_platform;
    `);
  }
}
