import { Migration } from '@mikro-orm/migrations';

/** What people do with their own sign-in. The person is notified, and cannot turn it off. */
const personKinds = [
  'password.change',
  'factor.add',
  'factor.remove',
  'recovery_codes.renew',
  'sign_in.recover',
  'sign_in.complete',
  'sign_in.change_address',
];

/** What people do in an organization, and the state that a webhook has: the members concerned are notified. */
const keyKinds = ['key.create', 'key.rotate', 'key.revoke', 'key.report'];
const webhookKinds = ['webhook.suspend', 'webhook.resume'];
const ownerKinds = ['audit_log.download', 'audit_log.evidence', 'owner.add', 'owner.remove'];

/** What time shows: facts that no entry of the log has. */
const noticeKinds = ['webhook.failing', 'key.expiring'];

/** What a member may turn off. Without mails about suspensions there are none about their end either. */
const optionalKinds = ['webhook.failing', 'webhook.suspend', 'key.expiring'];

const mailKinds = ['invitation', ...personKinds, ...keyKinds, ...webhookKinds, ...ownerKinds, ...noticeKinds];

const listed = (texts: readonly string[]) => texts.map((text) => `'${text}'`).join(', ');

/**
 * Mail: an outbox, the facts that no action records, and what members turned off. A trigger of the
 * audit log writes the mails about actions, in the transaction of the action, so that no writer can forget
 * them; a step of maintenance records what time shows. Of what people typed, a mail contains the
 * organization's name and a webhook's host.
 */
export class Mail extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      -- What can be the recipient of a mail as it is: no list, no quotes, no route.
      create function is_mail_address(value text) returns boolean language sql immutable parallel safe
      return value ~ '^[!-~]{1,64}@[A-Za-z0-9.-]{1,189}$' and value !~ '@.*@' and value !~ '[][<>(),:;"\\\\]';

      create table mail (
        id uuid primary key default new_id(),
        -- Null: about a person's sign-in, which is of no organization.
        organization_id uuid constraint mail_organization references organization,
        kind text not null constraint mail_kind_known check (kind in (${listed(mailKinds)})),
        person_id text collate "C" not null constraint mail_person references person,
        -- Erased when the mail is settled, as is the sealed token of a link.
        address text constraint mail_address_form check (is_mail_address(address)),
        sealed bytea,
        -- The id of the key or webhook, or the hash of the link's token in hex.
        about text constraint mail_about_form check (about ~ '^[0-9a-f-]{36,64}$'),
        -- What its text says, from its admission on: a repeat after a crash has the same bytes. Null
        -- again after a try that the server has certainly not accepted.
        facts jsonb,
        state text not null default 'waiting'
          constraint mail_state_known check (state in ('waiting', 'sent', 'rejected', 'expired', 'dropped')),
        attempts integer not null default 0 constraint mail_attempts_not_negative check (attempts >= 0),
        -- When the next attempt may be made. During one, when it counts as lost.
        due_at timestamptz default clock_timestamp(),
        -- The time of what it tells, and the Date of the mail.
        created_at timestamptz not null default now(),
        settled_at timestamptz,
        -- The last reply of the server: its codes, without its text.
        reply text constraint mail_reply_form check (reply ~ '^[A-Z0-9_. ]{1,30}$'),
        constraint mail_waiting_is_due check ((state = 'waiting') = (due_at is not null)),
        constraint mail_waiting_has_address check ((state = 'waiting') = (address is not null)),
        constraint mail_settled_has_time check ((state = 'waiting') = (settled_at is null)),
        constraint mail_settled_has_no_token check (state = 'waiting' or sealed is null)
      );
      create index mail_due on mail (due_at, id) where state = 'waiting';
      create index mail_settled on mail (settled_at) where state <> 'waiting';
      create index mail_by_person on mail (organization_id, person_id, created_at);
      -- What continues is one mail: its text is made when it is sent, from what is true then.
      create unique index mail_merged on mail (organization_id, kind, person_id)
        where state = 'waiting' and kind in (${listed(noticeKinds)});
      -- What a member may do any number of times is one mail until it is sent.
      create unique index mail_repeated on mail (organization_id, kind, person_id, coalesce(about, ''))
        where state = 'waiting' and kind in ('key.report', 'audit_log.download', 'audit_log.evidence');
      -- An action on a sign-in is in the audit log of each of its person's organizations, and is one mail.
      create unique index mail_of_sign_in on mail (person_id, kind, created_at, address) where organization_id is null;

      -- Facts that no action records. The key prevents a second mail about one: "step" is the day, or the
      -- days that a key has left.
      create table notice (
        organization_id uuid not null constraint notice_organization references organization,
        kind text not null constraint notice_kind_known check (kind in (${listed(noticeKinds)})),
        subject_id uuid not null,
        step text not null constraint notice_step_length check (length(step) between 1 and 40),
        at timestamptz not null default now(),
        primary key (organization_id, kind, subject_id, step)
      );
      create index notice_by_time on notice (at);

      create table mail_opt_out (
        organization_id uuid not null,
        person_id text collate "C" not null,
        kind text not null constraint mail_opt_out_kind_known check (kind in (${listed(optionalKinds)})),
        primary key (organization_id, person_id, kind),
        constraint mail_opt_out_membership foreign key (organization_id, person_id)
          references membership on delete cascade
      );
    `);

    this.addSql(/* sql */ `
      -- The active members who get a kind, with the address that they have in the organization: one whose
      -- sign-in it has not confirmed might be another person. Addresses that no mail can have are left out.
      create function list_mail_recipients(org uuid, what text) returns table (person_id text, address text)
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        select m.person_id, m.email from membership m
        where m.organization_id = org and m.status = 'active'
          and is_mail_address(m.email)
          and exists (select from sign_in_confirmation c
            where c.organization_id = org and c.person_id = m.person_id)
          and exists (select from membership_role mr join role r on r.id = mr.role_id
            where mr.organization_id = org and mr.person_id = m.person_id and case
              when what in (${listed(ownerKinds)}) then r.organization_id is null and r.key = 'owner'
              when what in (${listed([...keyKinds, 'key.expiring'])}) then 'org.keys.manage' = any (r.permissions)
              else 'org.webhooks.manage' = any (r.permissions) end)
          and not exists (select from mail_opt_out f
            where f.organization_id = org and f.person_id = m.person_id
              and f.kind = case what when 'webhook.resume' then 'webhook.suspend' else what end);
      end;

      -- Writes a mail for each recipient. Those about what continues wait for ten minutes, so that what begins
      -- together is one mail.
      create function write_mails(org uuid, what text, subject text) returns void
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        insert into mail (organization_id, kind, person_id, address, about, due_at)
        select org, what, r.person_id, r.address, subject,
          clock_timestamp() + case when what in (${listed(noticeKinds)}) then interval '10 minutes' else '0' end
        from list_mail_recipients(org, what) r
        -- The end of a suspension interests those who heard of it, once.
        where what <> 'webhook.resume' or exists (select from mail s
          where s.organization_id = org and s.person_id = r.person_id and s.kind = 'webhook.suspend'
            and s.about = subject and s.state = 'sent' and not exists (select from mail e
              where e.organization_id = org and e.person_id = r.person_id and e.kind = 'webhook.resume'
                and e.about = subject and e.created_at > s.created_at))
        on conflict do nothing;
      end;

      create function notify_of_entry(entry audit_entry) returns void
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        detail constant jsonb := coalesce(entry.detail, '{}');
      begin
        if entry.action in (${listed(personKinds)}) then
          insert into mail (kind, person_id, address, created_at)
          select entry.action, s.person_id, s.email, entry.at from sign_in s
          where s.person_id = entry.person_id and is_mail_address(s.email)
          on conflict do nothing;
        elsif entry.action like 'key.%' then
          perform write_mails(entry.organization_id, entry.action, entry.key_id::text);
        elsif entry.action like 'webhook.%' then
          perform write_mails(entry.organization_id, entry.action, detail ->> 'webhookId');
        elsif entry.action like 'audit_log.%' then
          perform write_mails(entry.organization_id, entry.action, null);
        elsif detail ->> 'key' = 'owner' or detail -> 'roleKeys' ? 'owner' then
          perform write_mails(entry.organization_id,
            case entry.action when 'member.role_unassign' then 'owner.remove' else 'owner.add' end, null);
        end if;
      end $$;

      -- A mail must not fail the action that it is about: the mails are then lost, and the server's log says so.
      create function notify_of_audit_entry() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform notify_of_entry(new);
        return null;
      exception when others then
        raise warning 'mails about an action were not written: %', sqlstate;
        return null;
      end $$;
      create trigger audit_entry_notifies after insert on audit_entry for each row
        when (new.status is null and (new.action in (${listed([
          ...personKinds.filter((kind) => !['sign_in.complete', 'sign_in.change_address'].includes(kind)),
          ...keyKinds,
          ...webhookKinds,
          'audit_log.download',
          'audit_log.evidence',
          'member.invite',
          'member.role_assign',
          'member.role_unassign',
        ])}) or new.action = 'sign_in.complete' and new.detail -> 'isNewBrowser' = 'true'))
        execute function notify_of_audit_entry();

      -- Both addresses are notified of their change.
      create function notify_of_address_change() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        insert into mail (kind, person_id, address)
        select 'sign_in.change_address', new.person_id, a.address from unnest(array[old.email, new.email]) a (address)
        where is_mail_address(a.address) on conflict do nothing;
        return null;
      exception when others then
        raise warning 'mails about an address were not written: %', sqlstate;
        return null;
      end $$;
      create trigger sign_in_address_notifies after update of email on sign_in for each row
        when (old.email <> new.email) execute function notify_of_address_change();
    `);

    this.addSql(/* sql */ `
      -- Webhooks whose receiver has accepted nothing for an hour: a deployment of minutes is no mail.
      create function list_failing_webhooks(org uuid) returns table (id uuid, number smallint, host text,
        failing_since timestamptz)
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        select w.id, w.number, w.host, r.failing_since
        from receiver r join webhook w on w.organization_id = r.organization_id and w.id = r.webhook_id
        where (org is null or r.organization_id = org) and w.state = 'active'
          and r.failing_since <= clock_timestamp() - interval '1 hour';
      end;

      -- Keys without a successor that end within two weeks. One that was created for a shorter time is
      -- listed when less than half of it is left.
      create function list_expiring_keys(org uuid) returns table (id uuid, number smallint, expires_at timestamptz)
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        select k.id, k.number, k.expires_at from api_key k
        where (org is null or k.organization_id = org)
          and k.expires_at > now() and k.expires_at <= now() + interval '14 days'
          and k.revoked_at is null and k.creator_left_at is null
          and k.expires_at - now() < (k.expires_at - k.created_at) / 2
          and not exists (select from api_key n where n.predecessor_id = k.id);
      end;

      -- Records what time shows. Safe to repeat. Returns how many facts are new.
      create function record_notices() returns integer
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        with recorded as (
          insert into notice (organization_id, kind, subject_id, step)
          select w.organization_id, 'webhook.failing', f.id, to_char(now() at time zone 'UTC', 'YYYY-MM-DD')
          from list_failing_webhooks(null) f join webhook w on w.id = f.id
          where not exists (select from notice n where n.organization_id = w.organization_id
            and n.kind = 'webhook.failing' and n.subject_id = f.id and n.at > now() - interval '24 hours')
          union all
          select k.organization_id, 'key.expiring', e.id,
            (select min(d) from unnest(array[14, 3, 1]) d where e.expires_at <= now() + d * interval '1 day')::text
          from list_expiring_keys(null) e join api_key k on k.id = e.id
          on conflict do nothing
          returning 1
        ) select count(*)::integer from recorded;
      end;

      create function notify_of_notice() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform write_mails(new.organization_id, new.kind, null);
        return null;
      end $$;
      create trigger notice_notifies after insert on notice for each row execute function notify_of_notice();
      grant execute on function record_notices to org_api_worker;
    `);

    this.addSql(/* sql */ `
      -- What a mail says, or null when it is no longer true: a used link, a repaired webhook, a key with a
      -- successor, a person who is no longer told.
      create function find_mail_facts(m mail) returns jsonb
      language plpgsql stable security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        items jsonb := '[]';
        expires timestamptz;
      begin
        if m.organization_id is null then
          return case when exists (select from sign_in s where s.person_id = m.person_id)
            then '{"items":[]}'::jsonb end;
        elsif m.kind = 'invitation' then
          select e.expires_at into expires from enrolment e
            where e.organization_id = m.organization_id and e.person_id = m.person_id and e.expires_at > now()
              and encode(e.token_hash, 'hex') = m.about;
          if not found then return null; end if;
        elsif not exists (select from list_mail_recipients(m.organization_id, m.kind) r
          where r.person_id = m.person_id) then
          return null;
        elsif m.kind = 'webhook.failing' then
          select jsonb_agg(jsonb_build_object('id', f.id, 'number', f.number, 'host', f.host,
            'at', api.utc(f.failing_since)) order by f.failing_since, f.id) into items
            from list_failing_webhooks(m.organization_id) f;
          if items is null then return null; end if;
        elsif m.kind = 'key.expiring' then
          select jsonb_agg(jsonb_build_object('id', k.id, 'number', k.number, 'at', api.utc(k.expires_at))
            order by k.expires_at, k.id) into items from list_expiring_keys(m.organization_id) k;
          if items is null then return null; end if;
        elsif m.kind like 'webhook.%' then
          select jsonb_build_array(jsonb_build_object('id', w.id, 'number', w.number, 'host', w.host)) into items
            from webhook w where w.organization_id = m.organization_id and w.id::text = m.about
              and w.state = case m.kind when 'webhook.suspend' then 'suspended' else 'active' end;
          if not found then return null; end if;
        elsif m.kind like 'key.%' then
          select jsonb_build_array(jsonb_build_object('id', k.id, 'number', k.number)) into items
            from api_key k where k.organization_id = m.organization_id and k.id::text = m.about;
        end if;
        return (select jsonb_build_object('organization', o.name, 'items', items,
            'expiresAt', case when expires is not null then api.utc(expires) end)
          from organization o where o.id = m.organization_id);
      end $$;

      create function close_mail(mail_id uuid, outcome text, answer text) returns void
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        update mail set state = outcome, reply = coalesce(answer, reply), settled_at = clock_timestamp(),
          due_at = null, address = null, sealed = null, facts = null
        where id = mail_id and state = 'waiting';
      end;

      -- Admits the next attempt that is due, for five minutes, which is longer than one takes. Settles
      -- what is no longer true, and after 72 hours what no server took. No row: nothing is due.
      create function admit_mail() returns table (id uuid, kind text, organization_id uuid, person_id text,
        address text, sealed bytea, facts jsonb, attempts integer, created_at timestamptz)
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_column
      declare
        due mail;
        found_facts jsonb;
      begin
        loop
          select m.* into due from mail m where m.state = 'waiting' and m.due_at <= clock_timestamp()
            order by m.due_at, m.id limit 1 for update skip locked;
          exit when not found;
          found_facts := find_mail_facts(due);
          if found_facts is null then
            perform close_mail(due.id, 'dropped', null);
          elsif due.created_at < now() - interval '72 hours' then
            perform close_mail(due.id, 'expired', null);
          else
            return query update mail m set attempts = m.attempts + 1,
                due_at = clock_timestamp() + interval '5 minutes', facts = coalesce(m.facts, found_facts)
              where m.id = due.id
              returning m.id, m.kind, m.organization_id, m.person_id, m.address, m.sealed, m.facts, m.attempts,
                m.created_at;
            return;
          end if;
        end loop;
      end $$;

      -- Records the end of an attempt: "sent" or "rejected". Null: it waits so many seconds for another.
      create function settle_mail(mail_id uuid, attempt integer, outcome text, answer text,
        wait_seconds double precision) returns void
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if outcome = 'sent' then
          perform close_mail(mail_id, outcome, answer);
        elsif exists (select from mail m where m.id = mail_id and m.attempts = attempt for update) then
          if outcome = 'rejected' then
            perform close_mail(mail_id, outcome, answer);
          else
            update mail m set reply = answer, facts = null,
              due_at = clock_timestamp() + make_interval(secs => wait_seconds)
            where m.id = mail_id and m.state = 'waiting';
          end if;
        end if;
      end $$;

      -- Without a mail server nothing waits, so that nothing floods people when one is configured.
      create function drop_mails() returns integer
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        with dropped as (
          select close_mail(m.id, 'dropped', null) from mail m
          where m.state = 'waiting' and m.created_at < now() - interval '1 minute'
        ) select count(*)::integer from dropped;
      end;

      -- Settled mails are kept for 30 days: who got one about a suspension gets one about its end.
      create function purge_mails() returns void
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        delete from mail where settled_at < now() - interval '30 days';
        delete from notice where at < now() - interval '400 days';
      end;

      -- An invitation by mail, within its bounds: 50 a day of an organization, 3 a day to a person. The
      -- organization's row is locked, so concurrent ones are counted. Returns whether it was written.
      create function write_invitation(mail_id uuid, org uuid, invited text, sealed_token bytea) returns boolean
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform lock_organization(org);
        if exists (select from mail m where m.organization_id = org and m.kind = 'invitation'
          and m.created_at > now() - interval '24 hours'
          having count(*) >= 50 or count(*) filter (where m.person_id = invited) >= 3) then
          return false;
        end if;
        insert into mail (id, organization_id, kind, person_id, address, sealed, about)
        select mail_id, org, 'invitation', e.person_id, e.email, sealed_token, encode(e.token_hash, 'hex')
        from enrolment e where e.organization_id = org and e.person_id = invited and is_mail_address(e.email);
        return found;
      end $$;

      grant execute on function admit_mail, settle_mail, drop_mails, purge_mails to org_api_worker;
      grant execute on function write_invitation to org_api_console;
      grant select (organization_id, id, kind, person_id, state, created_at, settled_at, reply) on mail
        to org_api_console;
      grant select, insert, delete on mail_opt_out to org_api_console;
    `);
  }
}
