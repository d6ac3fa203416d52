import { Migration } from '@mikro-orm/migrations';

/**
 * Whether a webhook `w` with its receiver `r` may be sent something now. A `Retry-After` lasts an
 * hour at most.
 */
const maySend = /* sql */ `w.state = 'active' and r.gone_at is null
          and is_due(r.retry_after_until, interval '1 hour') is not false
          and (select a.state = 'running' from delivery_switch a)`;

/**
 * Functions that assign concurrency slots. Running workers of two versions may call them, so a
 * later change creates a function of another name.
 *
 * Their statements must see what another claim or retry of the organization has committed. So they
 * are volatile, and an own statement locks the row of `slot_lock` first: the next one has a newer
 * snapshot. In one statement, two relays together took 12 slots of 10, and deadlocked.
 */
export class DeliveryFunctions extends Migration {
  override up(): void {
    // The bound of posts a second is a token bucket with one stored time: when it is full. It holds a
    // tenth of a second's posts and one more, at least 2: what becomes free while nothing looks is
    // not lost, so that a bound is reached. With `rate` null there is no bound. A time that is further
    // ahead than a bucket that has just been emptied is from before the clock was set back: it is
    // full.
    this.addSql(/* sql */ `
      create function free_posts(rate smallint, full_at timestamptz) returns integer
      language sql stable parallel safe as $$
        select (rate + 19) / 10 - case when is_due(full_at, interval '2 seconds') is false
          then ceil(rate * extract(epoch from full_at - statement_timestamp()))::integer else 0 end
      $$;

      create function posts_full_after(rate smallint, full_at timestamptz, posted_at timestamptz) returns timestamptz
      language sql stable parallel safe as $$
        select case when is_due(full_at, interval '2 seconds') is false then greatest(full_at, posted_at)
          else posted_at end + make_interval(secs => 1.0 / rate)
      $$;
    `);

    // Bounds: the receiver's `concurrency`; 50 of an organization for healthy webhooks, a quarter of one
    // worker's default `DELIVERY_SLOTS`, and 5 for degraded ones, whose attempts last seconds and
    // take processor time from others; 20 of an organization at one host, because two webhooks are
    // often on one machine. A webhook is degraded while its receiver fails or is slow: a
    // concurrency below 5, or two attempts that have lasted for 3 s. A webhook with a bound of posts a
    // second has no more free slots than posts; each reserved slot has its post.
    this.addSql(/* sql */ `
      create function free_slots(organizations uuid[], webhooks uuid[])
      returns table (organization_id uuid, webhook_id uuid, host text, degraded boolean, used bigint,
        webhook_free bigint, organization_free bigint, host_free bigint)
      language sql stable as $$
        select g.organization_id, g.webhook_id, w.host, b.degraded, u.of_webhook,
          least(r.concurrency - u.of_webhook, free_posts(w.posts_per_second, r.posts_full_at) - u.reserved),
          case when b.degraded then 5 - u.of_degraded else 50 - u.of_healthy end, 20 - u.of_host
        from unnest(organizations, webhooks) as g (organization_id, webhook_id)
        join webhook w on w.organization_id = g.organization_id and w.id = g.webhook_id
        join receiver r on r.organization_id = g.organization_id and r.webhook_id = g.webhook_id
        cross join lateral (
          select count(*) filter (where s.webhook_id = g.webhook_id) as of_webhook,
            count(*) filter (where s.webhook_id = g.webhook_id and s.attempt_id is null) as reserved,
            count(*) filter (where s.webhook_id = g.webhook_id
              and s.admitted_at < statement_timestamp() - interval '3 seconds') as slow_ones,
            count(*) filter (where s.degraded) as of_degraded, count(*) filter (where not s.degraded) as of_healthy,
            count(*) filter (where s.host = w.host) as of_host
          from slot s where s.organization_id = g.organization_id
        ) u
        cross join lateral (select r.concurrency < 5 or u.slow_ones >= 2 as degraded) b
        where ${maySend}
      $$;
    `);

    // Moves due deliveries of given webhooks (arrays of equal length without duplicates) from
    // `queued` to `running`, with a slot each that is reserved for `reserve_seconds`, and numbers
    // those that have no number yet: at most `healthy_limit` of healthy webhooks and `degraded_limit` of
    // degraded ones. It skips organizations for which another connection assigns slots, and
    // deliveries and receivers that another one has locked: it waits for nothing with its locks.
    //
    // The organization that has the fewest slots comes first, also with those of this claim, then
    // its webhook that has the fewest, then the oldest delivery, also one that was tried before.
    // So none waits behind another's backlog, even when slots become free one at a time. Ties of
    // organizations are broken at random: by age, older backlogs would go first.
    //
    // Its cost must not depend on the statistics, which a cached plan keeps from a moment without
    // queued deliveries. So it looks up the deliveries of one webhook after another in the index of
    // queued deliveries, and locks each by its key (`limit 1` prevents another join order).
    //
    // A delivery that has not failed since the event or the last redelivery is due, whatever its time
    // says: that is ahead when the clock was set back.
    //
    // `isFull`: the webhook, its organization or its host has no slot left after this claim, which
    // also counts deliveries that it then skips because another connection has locked them.
    // `dueAtMs`: Unix time in ms.
    this.addSql(/* sql */ `
      create function claim_deliveries(organizations uuid[], webhooks uuid[], healthy_limit integer,
        degraded_limit integer, reserve_seconds double precision)
      returns table ("organizationId" uuid, "webhookId" uuid, "eventId" uuid, run integer, "isDegraded" boolean,
        "isFull" boolean, type text, "dueAtMs" double precision)
      language plpgsql volatile as $$
      #variable_conflict use_column
      declare
        locked uuid[];
      begin
        select array_agg(l.organization_id) into locked from (
          select o.organization_id from slot_lock o where o.organization_id = any (organizations)
          for no key update skip locked) l;
        return query
        with free as materialized (
          select r.* from free_slots(organizations, webhooks) r where r.organization_id = any (locked)
        ), due as (
          select r.*, d.event_id, d.created_at,
            r.used + row_number() over (partition by r.webhook_id order by d.created_at, d.event_id) as webhook_rank
          from free r cross join lateral (
            select d.event_id, d.created_at from delivery d
            where d.organization_id = r.organization_id and d.webhook_id = r.webhook_id and d.state = 'queued'
              and (d.failures = 0 or d.due_at <= statement_timestamp()) and not exists (
                select from slot s where s.organization_id = d.organization_id and s.webhook_id = d.webhook_id
                  and s.event_id = d.event_id)
            order by d.created_at, d.event_id
            limit greatest(0, least(r.webhook_free, r.organization_free, r.host_free))
          ) d
        ), ranked as (
          select due.*, row_number() over (partition by due.organization_id, due.degraded
              order by due.webhook_rank, due.created_at, due.event_id, due.webhook_id) as organization_rank,
            row_number() over (partition by due.organization_id, due.host
              order by due.webhook_rank, due.created_at, due.event_id, due.webhook_id) as host_rank
          from due
        ), selected as materialized (
          select c.*, count(*) over (partition by c.webhook_id) >= c.webhook_free
            or count(*) over (partition by c.organization_id, c.degraded) >= c.organization_free
            or count(*) over (partition by c.organization_id, c.host) >= c.host_free as is_full
          from (
            select r.*, row_number() over (partition by r.degraded
              order by r.organization_rank - r.organization_free, random()) as rank
            from ranked r where r.organization_rank <= r.organization_free and r.host_rank <= r.host_free
          ) c
          where c.rank <= case when c.degraded then degraded_limit else healthy_limit end
        ), picked as materialized (
          select c.organization_id, c.webhook_id, c.event_id, c.host, c.degraded, c.is_full, d.due_at,
            case when d.sequence is null then row_number() over (partition by c.webhook_id, d.sequence is null
              order by c.created_at, c.event_id) end as nth
          from selected c cross join lateral (
            select d.sequence, d.state, d.due_at from delivery d, receiver r
            where d.organization_id = c.organization_id and d.webhook_id = c.webhook_id and d.event_id = c.event_id
              and r.organization_id = c.organization_id and r.webhook_id = c.webhook_id
            limit 1
            for no key update skip locked
          ) d
          where d.state = 'queued'
        ), numbered as (
          update receiver r set next_sequence = r.next_sequence + n.given
          from (select p.organization_id, p.webhook_id, count(*) as given from picked p where p.nth is not null
            group by p.organization_id, p.webhook_id) n
          where r.organization_id = n.organization_id and r.webhook_id = n.webhook_id
          returning r.organization_id, r.webhook_id, r.next_sequence - n.given as first
        ), moved as (
          update delivery d set state = 'running', run = d.run + 1, sequence = coalesce(d.sequence, p.first + p.nth - 1)
          from (select p.*, n.first from picked p
            left join numbered n on n.organization_id = p.organization_id and n.webhook_id = p.webhook_id) p
          where d.organization_id = p.organization_id and d.webhook_id = p.webhook_id and d.event_id = p.event_id
          returning d.organization_id, d.webhook_id, d.event_id, d.run, p.host, p.degraded, p.is_full, p.due_at
        ), reserved as (
          insert into slot (organization_id, webhook_id, event_id, run, host, degraded, until)
          select m.organization_id, m.webhook_id, m.event_id, m.run, m.host, m.degraded,
            clock_timestamp() + make_interval(secs => reserve_seconds)
          from moved m
        )
        select m.organization_id, m.webhook_id, m.event_id, m.run, m.degraded, m.is_full,
          (select e.type from event e where e.organization_id = m.organization_id and e.id = m.event_id),
          (extract(epoch from m.due_at) * 1000)::double precision
        from moved m;
      end $$;
    `);

    // Admits an attempt of a delivery's run, and inserts its row before anything is sent.
    // `attempt` is an id created by the caller, who may ask again with it when the reply was lost.
    // `waits`: those of the schedule in ms; it has one attempt more. The slot is the attempt's for
    // `slot_seconds`.
    //
    // `decision` is explained by `AdmissionRow`. With `end` the delivery also goes back into the queue
    // when there is no free slot or the webhook may not be sent anything now.
    //
    // The run that was claimed last has a reserved slot and needs no lock. An attempt counts against the
    // bound of posts a second when it is admitted, in the time that its row has. A delivery counts as due
    // a second early, because clocks differ. Its longest wait is that of the schedule, with its
    // jitter, or of an internal error (11 minutes).
    //
    // `next_attempt_number` is for an attempt whose row a failover lost; the caller has locked its
    // delivery. It locks the slot before it reads: a newer attempt that is being admitted is seen,
    // and one that is admitted afterwards sees the caller's.
    this.addSql(/* sql */ `
      create function admit_attempt(organization uuid, webhook uuid, event uuid, asking_run integer, attempt uuid,
        waits double precision[], slot_seconds double precision)
      returns table (decision text, "waitMs" double precision, number integer, failures smallint,
        "endsSchedule" boolean, url text, "resetAt" text, body text, sequence text, secrets json, headers text,
        "startedAt" text, "startedAtMs" double precision)
      language plpgsql volatile as $$
      #variable_conflict use_column
      declare
        found_delivery delivery;
        found_slot slot;
        has_slot boolean;
      begin
        update slot s set attempt_id = attempt, admitted_at = clock_timestamp(),
          until = clock_timestamp() + make_interval(secs => slot_seconds)
        where s.organization_id = organization and s.webhook_id = webhook and s.event_id = event
          and s.attempt_id is null
          and exists (select from delivery d where d.organization_id = organization and d.webhook_id = webhook
            and d.event_id = event and d.run = asking_run and d.state = 'running')
          and exists (select from webhook w
            join receiver r on r.organization_id = w.organization_id and r.webhook_id = w.id
            where w.organization_id = organization and w.id = webhook and ${maySend});
        if not found then
          -- Rows are locked in the order of the tables: one that skips its delivery locks no organization.
          select d.* into found_delivery from delivery d join slot_lock o on o.organization_id = d.organization_id
            where d.organization_id = organization and d.webhook_id = webhook and d.event_id = event
            for no key update skip locked;
          if not found then
            decision := case when exists (select from delivery d where d.organization_id = organization
              and d.webhook_id = webhook and d.event_id = event) then 'lock_busy' else 'end' end;
            return next;
            return;
          end if;
          select s.* into found_slot from slot s
            where s.organization_id = organization and s.webhook_id = webhook and s.event_id = event;
          if found_slot.attempt_id is distinct from attempt then
            if found_delivery.run is distinct from asking_run or found_delivery.state not in ('queued', 'running') then
              decision := 'end';
            elsif found_slot.attempt_id is not null then
              decision := 'wait';
              "waitMs" := 1000 * (1 + least(slot_seconds, greatest(0,
                extract(epoch from found_slot.until - clock_timestamp()))));
            elsif found_slot.run is null and not is_due(found_delivery.due_at - interval '1 second',
              greatest(interval '11 minutes', make_interval(secs =>
                1.1 * waits[least(found_delivery.failures, cardinality(waits))] / 1000))) then
              decision := 'wait';
              "waitMs" := extract(epoch from found_delivery.due_at - clock_timestamp()) * 1000;
            end if;
            if decision is not null then
              return next;
              return;
            end if;
            delete from slot s
              where s.organization_id = organization and s.webhook_id = webhook and s.event_id = event;
            insert into slot (organization_id, webhook_id, event_id, run, host, degraded, attempt_id, admitted_at,
              until)
            select organization, webhook, event, asking_run, r.host, r.degraded, attempt, clock_timestamp(),
              clock_timestamp() + make_interval(secs => slot_seconds)
            from free_slots(array[organization], array[webhook]) r
            where r.webhook_free > 0 and r.organization_free > 0 and r.host_free > 0;
            has_slot := found;
            -- It is no more due: what looked for runs that are late saw no slot yet, and waits for this lock.
            update delivery d set state = case when has_slot then 'running' else 'queued' end,
              due_at = case when has_slot then clock_timestamp() else d.due_at end
            where d.organization_id = organization and d.webhook_id = webhook and d.event_id = event;
            if not has_slot then
              decision := 'end';
              return next;
              return;
            end if;
          end if;
        end if;
        return query
        with valid as (
          select s.id, s.sealed, s.valid_until, s.created_at from webhook_secret s
          where s.organization_id = organization and s.webhook_id = webhook
            and (s.valid_until is null or s.valid_until > clock_timestamp())
        ), inserted as (
          insert into delivery_attempt (organization_id, webhook_id, event_id, id, number, run, ends_schedule,
            signed_with, started_at)
          select organization, webhook, event, attempt, d.attempts + 1, asking_run,
            d.failures >= cardinality(waits), coalesce((select array_agg(v.id) from valid v), '{}'), s.admitted_at
          from delivery d
          join slot s on s.organization_id = organization and s.webhook_id = webhook and s.event_id = event
          where d.organization_id = organization and d.webhook_id = webhook and d.event_id = event
          on conflict do nothing
          returning number, ends_schedule, started_at
        ), counted as (
          update receiver r set posts_full_at = posts_full_after(w.posts_per_second, r.posts_full_at, i.started_at)
          from inserted i, webhook w
          where w.organization_id = organization and w.id = webhook and w.posts_per_second is not null
            and r.organization_id = organization and r.webhook_id = webhook
        ), admitted as (
          select i.number, i.ends_schedule, i.started_at from inserted i
          union all
          select a.number, a.ends_schedule, a.started_at from delivery_attempt a
          where a.organization_id = organization and a.webhook_id = webhook and a.event_id = event and a.id = attempt
        )
        select 'admitted', null::double precision, a.number, d.failures, a.ends_schedule, w.url,
          r.reset_at::text, e.body, d.sequence::text,
          (select json_agg(json_build_object('id', v.id, 'sealed', encode(v.sealed, 'base64'))
            order by v.valid_until desc nulls first, v.created_at desc) from valid v),
          encode(w.headers_sealed, 'base64'), a.started_at::text,
          (extract(epoch from a.started_at) * 1000)::double precision
        from admitted a
        join delivery d on d.organization_id = organization and d.webhook_id = webhook and d.event_id = event
        join webhook w on w.organization_id = organization and w.id = webhook
        join receiver r on r.organization_id = organization and r.webhook_id = webhook
        left join event e on e.organization_id = organization and e.id = event;
      end $$;

      create function next_attempt_number(organization uuid, webhook uuid, event uuid) returns integer
      language sql volatile as $$
        select from slot s where s.organization_id = organization and s.webhook_id = webhook and s.event_id = event
        for no key update;
        select coalesce(max(a.number), 0) + 1 from delivery_attempt a
        where a.organization_id = organization and a.webhook_id = webhook and a.event_id = event
      $$;

      grant execute on function free_posts, posts_full_after, free_slots, claim_deliveries, admit_attempt,
        next_attempt_number to org_api_worker;
    `);
  }
}
