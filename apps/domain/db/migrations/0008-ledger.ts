import { Migration } from '@mikro-orm/migrations';

/**
 * What keeps the ledger's two counts short: rows that were counted and found right are rolled up into sums by day. Design, section 6.
 *
 * A row that is rolled up is guarded, not forgotten: whatever changes or removes it takes it out of its day's sum again, in the same transaction, so a redelivery, a
 * late 2xx, retention and a hand all leave the ledger telling the truth. The sums are rows that are only added, so no two changes wait for each other; rolling up folds them.
 * Running pods: survive it.
 */
export class Ledger extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      alter table event add column rolled_up boolean not null default false;
      alter table delivery add column rolled_up boolean not null default false,
        add constraint delivery_rolled_up_is_settled check (not rolled_up or settled_at is not null);
      create index event_not_rolled_up on event (created_at) include (obligations) where not rolled_up;
      create index delivery_not_rolled_up on delivery (settled_at) where not rolled_up and state in ('delivered', 'exhausted', 'cancelled');

      -- Several rows may be of one day; their sum counts.
      create table ledger_day (
        id bigint generated always as identity primary key,
        -- UTC, of the event.
        day date not null,
        obligations bigint not null default 0,
        delivered bigint not null default 0,
        exhausted bigint not null default 0,
        cancelled bigint not null default 0
      );
      create index ledger_day_by_day on ledger_day (day);

      -- The proof that a delivery was cancelled: somebody deleted its webhook, and the log says so.
      create index activity_webhook_deleted on activity (organization_id, (detail ->> 'webhookId')) where action = 'webhook.delete';
      create view webhook_deletion as
        select organization_id, detail ->> 'webhookId' as webhook_id, at from activity where action = 'webhook.delete';
    `);

    this.addSql(/* sql */ `
      create function delivery_leaves_ledger() returns trigger language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if old.rolled_up then
          insert into ledger_day (day, delivered, exhausted, cancelled) values ((old.created_at at time zone 'UTC')::date,
            -(old.state = 'delivered')::integer, -(old.state = 'exhausted')::integer, -(old.state = 'cancelled')::integer);
        end if;
        if tg_op = 'UPDATE' then
          new.rolled_up := false;
          return new;
        end if;
        -- Its event counted one more, and is to be looked at again, whether this one was rolled up or not.
        update event e set rolled_up = false where e.organization_id = old.organization_id and e.id = old.event_id and e.rolled_up;
        return old;
      end $$;
      create trigger delivery_leaves_ledger before update on delivery for each row
        when (old.rolled_up and (new.state <> old.state or not new.rolled_up)) execute function delivery_leaves_ledger();
      create trigger delivery_deleted_leaves_ledger before delete on delivery for each row
        execute function delivery_leaves_ledger();

      create function event_leaves_ledger() returns trigger language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        insert into ledger_day (day, obligations) values ((old.created_at at time zone 'UTC')::date, -old.obligations);
        if tg_op = 'UPDATE' then
          new.rolled_up := false;
          return new;
        end if;
        return old;
      end $$;
      create trigger event_leaves_ledger before update on event for each row
        when (old.rolled_up and (new.obligations <> old.obligations or not new.rolled_up)) execute function event_leaves_ledger();
      create trigger event_deleted_leaves_ledger before delete on event for each row
        when (old.rolled_up) execute function event_leaves_ledger();

      -- An attempt that has ended is a proof: without it, or with another outcome, its delivery is to be proven again.
      create function delivery_attempt_leaves_ledger() returns trigger language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        update delivery d set rolled_up = false
        where d.organization_id = old.organization_id and d.webhook_id = old.webhook_id and d.event_id = old.event_id and d.rolled_up;
        return null;
      end $$;
      create trigger delivery_attempt_leaves_ledger after update or delete on delivery_attempt for each row
        when (old.finished_at is not null) execute function delivery_attempt_leaves_ledger();

      grant select, insert, update, delete on ledger_day to org_api_worker;
      grant update (rolled_up) on event to org_api_worker;
      grant select on webhook_deletion to org_api_worker, org_api_console;
      grant select on ledger_day to org_api_console;
    `);
  }
}
