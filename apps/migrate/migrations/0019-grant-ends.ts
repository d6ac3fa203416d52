import { Migration } from '@mikro-orm/migrations';

/**
 * What proves the end of access: when reads stopped showing it, and entries of the audit log, which
 * outlive the deliveries of its event.
 */
export class GrantEnds extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create table grant_end (
        organization_id uuid not null,
        grant_id uuid not null,
        -- Every read before it showed the access as active. Ahead while the end is only planned.
        stopped_at timestamptz not null,
        -- Its \`client.ended\`. Null while the end is planned, and for an import without events.
        event_id uuid,
        -- The entries of the audit log: of the end, and the newest of the event's deliveries.
        entry_id uuid,
        notified_entry_id uuid,
        primary key (organization_id, grant_id),
        constraint grant_end_grant foreign key (organization_id, grant_id) references client_grant
      );
    `);

    // Neither `ends_at` nor the event has this time: an import writes an earlier end, and a transaction
    // may last. The trigger fires at the commit, so `stopped_at` is after each read that ended before
    // the commit was asked for. By the clock, reads stop at a planned end itself, which the row says
    // before the worker writes the end. Access that was withdrawn, or that arrives ended, was never shown.
    this.addSql(/* sql */ `
      create function record_grant_end() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        stored public.client_grant;
        moment timestamptz := clock_timestamp();
        ended_event public.event;
        new_entry uuid;
      begin
        if new.status = 'ended' then
          moment := least(moment, (select e.stopped_at from grant_end e
            where e.organization_id = new.organization_id and e.grant_id = new.id));
          select * into ended_event from event e where e.organization_id = new.organization_id
            and e.subject_id = new.id and e.type = 'client.ended' order by e.created_at desc limit 1;
          insert into audit_entry (organization_id, action, detail)
            values (new.organization_id, 'grant.ended', jsonb_strip_nulls(jsonb_build_object('grantId', new.id,
              'reason', new.end_reason, 'stoppedAt', api.utc(moment), 'eventId', ended_event.id,
              'deliveries', ended_event.delivery_count)))
            returning id into new_entry;
        else
          -- As the transaction leaves it: it may have changed the access again.
          select * into stored from client_grant g where g.organization_id = new.organization_id and g.id = new.id;
          if stored.status = 'ended' then return null; end if;
          if stored.status = 'withdrawn' or stored.ends_at is null then
            delete from grant_end e where e.organization_id = new.organization_id and e.grant_id = new.id;
            return null;
          end if;
          moment := greatest(moment, stored.ends_at);
        end if;
        insert into grant_end (organization_id, grant_id, stopped_at, event_id, entry_id)
          values (new.organization_id, new.id, moment, ended_event.id, new_entry)
          on conflict (organization_id, grant_id) do update set stopped_at = excluded.stopped_at,
            event_id = excluded.event_id, entry_id = excluded.entry_id;
        return null;
      end $$;
      create constraint trigger record_planned_end after insert on client_grant deferrable initially deferred
        for each row when (new.ends_at is not null and new.status in ('scheduled', 'active'))
        execute function record_grant_end();
      create constraint trigger record_grant_end after update on client_grant deferrable initially deferred
        for each row when (old.status in ('scheduled', 'active')
          and (new.status in ('ended', 'withdrawn') or new.ends_at is distinct from old.ends_at))
        execute function record_grant_end();
    `);

    // A delivery is rolled up into the ledger once it has been settled for a minute and a row proves it, and
    // again after each later change. It is purged only afterwards. So the entry is written there, once per
    // result, and settling a delivery does not wait for the others of its event.
    this.addSql(/* sql */ `
      -- The first 2xx response to a delivery, when it had arrived by the worker's clock, and how many of its
      -- attempts are lost: their responses are not known.
      create function delivery_response(organization uuid, webhook uuid, event uuid)
      returns table (acknowledged_at timestamptz, status smallint, lost integer) language sql stable parallel safe
      begin atomic
        select f.arrived_at, f.status, t.lost
        from (
          select count(*)::integer as lost from delivery_attempt a
          where a.organization_id = organization and a.webhook_id = webhook and a.event_id = event and a.cause = 'lost'
        ) t
        left join lateral (
          select a.status, a.started_at
            + coalesce((a.timings ->> 'total')::double precision, 0) * interval '1 millisecond' as arrived_at
          from delivery_attempt a
          where a.organization_id = organization and a.webhook_id = webhook and a.event_id = event
            and a.status between 200 and 299 and a.finished_at is not null
          order by a.started_at, a.id limit 1
        ) f on true;
      end;

      create function record_grant_notified() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        ended public.grant_end;
        noted jsonb;
        receivers jsonb;
      begin
        -- The later of two roll-ups waits here, and then sees what the earlier one has rolled up.
        select * into ended from grant_end e where e.organization_id = new.organization_id
          and e.grant_id = new.subject_id and e.event_id = new.event_id for no key update;
        if not found or exists (select from delivery d
          where d.organization_id = new.organization_id and d.event_id = new.event_id and not d.rolled_up)
        then
          return null;
        end if;
        noted := (select a.detail -> 'receivers' from audit_entry a
          where a.organization_id = new.organization_id and a.id = ended.notified_entry_id);
        -- What is purged already stays as the entry before says.
        select jsonb_agg(r.receiver order by r.receiver ->> 'webhookId') into receivers from (
          select jsonb_strip_nulls(jsonb_build_object('webhookId', d.webhook_id, 'state', d.state,
            'acknowledgedAt', api.utc(p.acknowledged_at), 'lost', nullif(p.lost, 0))) as receiver
          from delivery d cross join lateral delivery_response(d.organization_id, d.webhook_id, d.event_id) p
          where d.organization_id = new.organization_id and d.event_id = new.event_id
          union all
          select n.receiver from jsonb_array_elements(noted) n (receiver)
          where not exists (select from delivery d where d.organization_id = new.organization_id
            and d.event_id = new.event_id and d.webhook_id::text = n.receiver ->> 'webhookId')
        ) r;
        if receivers is distinct from noted then
          with entry as (
            insert into audit_entry (organization_id, action, detail)
            values (new.organization_id, 'grant.notified', jsonb_build_object('grantId', ended.grant_id,
              'eventId', ended.event_id, 'receivers', receivers))
            returning id
          )
          update grant_end e set notified_entry_id = entry.id from entry
          where e.organization_id = ended.organization_id and e.grant_id = ended.grant_id;
        end if;
        return null;
      end $$;
      create trigger record_grant_notified after update of rolled_up on delivery for each row
        when (new.rolled_up and not old.rolled_up and new.subject_id is not null)
        execute function record_grant_notified();

      grant select on grant_end to org_api_console;
      grant execute on function delivery_response to org_api_console;
    `);
  }
}
