import { Migration } from '@mikro-orm/migrations';

/**
 * Forms of the console that may be sent once: what was sent twice by a double click makes one key.
 * And API keys that are sent to the console, counted. Running pods: survive it.
 */
export class ConsoleForms extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create table form_use (
        session_id uuid not null constraint form_use_session references console_session on delete cascade,
        form_id uuid not null,
        primary key (session_id, form_id)
      );
      grant select, insert on form_use to org_api_console;
    `);

    // A key sent to the console is refused without asking the database, and counted: one line per
    // key and minute grows, with the address of the last request. The console may add to it, not
    // change any other line.
    this.addSql(/* sql */ `
      create unique index activity_keys_at_console_of_minute on activity (key_id, at) where action = 'api.console';
      create function api.record_keys_at_console(fingerprints bytea[], counts integer[], addresses inet[])
      returns void language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        insert into public.activity (at, organization_id, person_id, key_id, action, status, code, count, address)
        select date_trunc('minute', now()), k.organization_id, k.maker_id, k.id, 'api.console', 403, 'api_key_not_accepted',
          sum(r.refused)::integer, max(r.address)
        from unnest(fingerprints, counts, addresses) as r (fingerprint, refused, address)
        join public.api_key k on k.fingerprint = r.fingerprint
        group by k.id
        order by k.id
        on conflict (key_id, at) where action = 'api.console'
          do update set count = activity.count + excluded.count, address = excluded.address;
      end $$;
      grant execute on function api.record_keys_at_console to org_api_console;
    `);
  }
}
