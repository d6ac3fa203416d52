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
  'sign_in.link_provider',
  'sign_in.unlink_provider',
];

/** What people do in an organization: the members concerned are notified. */
const keyKinds = ['key.create', 'key.change', 'key.rotate', 'key.revoke', 'key.report'];
const webhookKinds = ['webhook.resume'];
const logKinds = ['audit_log.download', 'audit_log.evidence'];
const providerKinds = ['sso.set', 'sso.require', 'sso.accept_passwords', 'sso.remove'];
const ownerKinds = [...logKinds, ...providerKinds, 'owner.add', 'owner.remove', 'security_contact.change'];

/** What the service finds out by itself. Webhooks get the first three as operational events. */
const noticeKinds = ['webhook.failing', 'webhook.suspended', 'key.expiring', 'audit_log.anchor'];

/** What continues: one mail lists all that is true when it is sent. */
const mergedKinds = ['webhook.failing', 'key.expiring', 'audit_log.anchor'];

/** What owners get, and what the security contact gets too: all of an organization that no member may turn off. */
const ownersGet = [...ownerKinds, 'audit_log.anchor'];
const contactGets = [...keyKinds, ...ownersGet];

/** What a member may turn off. Without mails about suspensions there are none about their end either. */
const optionalKinds = ['webhook.failing', 'webhook.suspended', 'key.expiring'];

const mailKinds = ['invitation', ...personKinds, ...keyKinds, ...webhookKinds, ...ownerKinds, ...noticeKinds];

/** Of the system role (0002). */
const ownerRoleId = '0a1f0000-0000-7000-8000-000000000001';

const listed = (texts: readonly string[]) => texts.map((text) => `'${text}'`).join(', ');

/**
 * Mail: an outbox, the facts that the service finds out by itself, and what members turned off. A trigger of the
 * audit log writes the mails about actions, in the transaction of the action, so that no writer can forget
 * them; a step of maintenance records the facts, from which come both mails and operational events. Of what
 * people typed, a mail contains the organization's name and a webhook's host; an event contains nothing.
 */
export class Mail extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      -- What can be the recipient of a mail as it is: no list, no quotes, no route.
      create function is_mail_address(value text) returns boolean language sql immutable parallel safe
      return value ~ '^[!-~]{1,64}@[A-Za-z0-9.-]{1,252}$' and value !~ '@.*@' and value !~ '[][<>(),:;"\\\\]';

      create table mail (
        id uuid primary key default new_id(),
        -- Null: about a person's sign-in, which is of no organization.
        organization_id uuid constraint mail_organization references organization,
        kind text not null constraint mail_kind_known check (kind in (${listed(mailKinds)})),
        -- Null: the organization's security contact.
        person_id text collate "C" constraint mail_person references person,
        -- Each organization, and each person for their sign-in, has a queue of its own: one with many mails
        -- delays none of another. What time shows may be due for all organizations at once, so each kind of it
        -- is one queue.
        queue text collate "C" not null generated always as (
          case when kind in (${listed(noticeKinds)}) then kind
            else coalesce(organization_id::text, person_id) end) stored,
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
        attempted_at timestamptz,
        -- When the next attempt may be made. During one, when it counts as lost.
        due_at timestamptz default clock_timestamp(),
        -- It is due, and stands in its queue.
        is_ready boolean not null default false,
        -- The time of what it tells, and the Date of the mail.
        created_at timestamptz not null default now(),
        settled_at timestamptz,
        -- The last reply of the server: its codes, without its text.
        reply text constraint mail_reply_form check (reply ~ '^[A-Z0-9_. ]{1,30}$'),
        constraint mail_waiting_is_due check ((state = 'waiting') = (due_at is not null)),
        constraint mail_waiting_has_address check ((state = 'waiting') = (address is not null)),
        constraint mail_ready_waits check (state = 'waiting' or not is_ready),
        constraint mail_settled_has_time check ((state = 'waiting') = (settled_at is null)),
        constraint mail_settled_has_no_token check (state = 'waiting' or sealed is null)
      );
      create index mail_due on mail (due_at, id) where state = 'waiting' and not is_ready;
      create index mail_due_first on mail (due_at, id) where state = 'waiting' and not is_ready and attempts = 0;
      create index mail_ready on mail (queue, due_at, id) where is_ready;
      create index mail_attempted on mail (attempted_at) where attempted_at is not null;
      create index mail_settled on mail (settled_at) where state <> 'waiting';
      create index mail_by_person on mail (organization_id, person_id, created_at);
      -- What continues is one mail: its text is made when it is sent, from what is true then.
      create unique index mail_merged on mail (organization_id, kind, person_id) nulls not distinct
        where state = 'waiting' and kind in (${listed(mergedKinds)});
      -- What a member may do any number of times is one mail until it is sent.
      create unique index mail_repeated on mail (organization_id, kind, person_id, coalesce(about, ''))
        nulls not distinct where state = 'waiting'
          and kind in (${listed(['key.report', 'key.change', 'sso.set', 'owner.add', 'owner.remove', ...logKinds])});
      -- An action on a sign-in is in the audit log of each of its person's organizations, and is one mail.
      create unique index mail_of_sign_in on mail (person_id, kind, created_at, address) where organization_id is null;

      -- Facts that the service finds out by itself. The key prevents a second notice of one: "step" is the day, the
      -- days that a key has left, or the time of a suspension.
      create table notice (
        organization_id uuid not null constraint notice_organization references organization,
        kind text not null constraint notice_kind_known check (kind in (${listed(noticeKinds)})),
        subject_id uuid not null,
        step text not null constraint notice_step_length check (length(step) between 1 and 40),
        at timestamptz not null default now(),
        -- \`data\` of the event, as JSON; null: it is no event.
        data text,
        primary key (organization_id, kind, subject_id, step),
        constraint notice_event_has_data check ((kind = 'audit_log.anchor') = (data is null))
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
      create function list_mail_members(org uuid, what text) returns table (person_id text, address text)
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        select m.person_id, m.email from membership m
        where m.organization_id = org and m.status = 'active'
          and is_mail_address(m.email)
          and exists (select from sign_in_confirmation c
            where c.organization_id = org and c.person_id = m.person_id)
          and exists (select from membership_role mr join role r on r.id = mr.role_id
            where mr.organization_id = org and mr.person_id = m.person_id and case
              when what in (${listed(ownersGet)}) then r.organization_id is null and r.key = 'owner'
              when what in (${listed([...keyKinds, 'key.expiring'])}) then 'org.keys.manage' = any (r.permissions)
              else 'org.webhooks.manage' = any (r.permissions) end)
          and not exists (select from mail_opt_out f
            where f.organization_id = org and f.person_id = m.person_id
              and f.kind = case what when 'webhook.resume' then 'webhook.suspended' else what end);
      end;

      -- Owners choose the address of the contact, so it might be a stranger's.
      create function may_mail_contact(org uuid) returns boolean
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        select count(*) < 50 from mail m
        where m.organization_id = org and m.person_id is null and m.created_at > now() - interval '24 hours';
      end;

      -- Those members, and the security contact, who is no person. An address gets one mail. Owners get an anchor
      -- when there is no contact.
      create function list_mail_recipients(org uuid, what text) returns table (person_id text, address text)
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        with contact as (
          select s.security_contact as address from organization_setting s
          where s.organization_id = org and what in (${listed(contactGets)}) and is_mail_address(s.security_contact)
            and may_mail_contact(org)
        )
        select m.person_id, m.address from list_mail_members(org, what) m
        where what <> 'audit_log.anchor' or not exists (select from contact)
        union all
        select null, c.address from contact c
        where what = 'audit_log.anchor'
          or not exists (select from list_mail_members(org, what) m where lower(m.address) = c.address);
      end;

      -- Writes a mail for each recipient. Those about what continues wait for ten minutes, so that what begins
      -- together is one mail.
      create function write_mails(org uuid, what text, subject text, except_person text default null) returns void
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        insert into mail (organization_id, kind, person_id, address, about, due_at)
        select org, what, r.person_id, r.address, subject,
          clock_timestamp() + case when what in (${listed(mergedKinds)}) then interval '10 minutes' else '0' end
        from list_mail_recipients(org, what) r
        where (except_person is null or r.person_id is distinct from except_person)
          -- The end of a suspension interests those who heard of it, once.
          and (what <> 'webhook.resume' or exists (select from mail s
          where s.organization_id = org and s.person_id = r.person_id and s.kind = 'webhook.suspended'
            and s.about = subject and s.state = 'sent' and not exists (select from mail e
              where e.organization_id = org and e.person_id = r.person_id and e.kind = 'webhook.resume'
                and e.about = subject and e.created_at > s.created_at)))
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
        elsif entry.action = 'webhook.resume' then
          perform write_mails(entry.organization_id, entry.action, detail ->> 'webhookId');
        elsif entry.action = 'audit_log.download' and detail ->> 'format' = 'evidence' then
          -- When it starts: one that is cut off before its end is known as well.
          perform write_mails(entry.organization_id, 'audit_log.evidence', null);
        elsif entry.action = 'sso.require' and detail -> 'to' <> 'true' then
          perform write_mails(entry.organization_id, 'sso.accept_passwords', null);
        elsif entry.action = 'organization.change' then
          perform write_mails(entry.organization_id, 'security_contact.change', null);
          -- The old contact as well: an attacker with an owner's sign-in would change the contact first. This mail
          -- is of the time before the change, so what becomes of it says nothing about the new address.
          insert into mail (organization_id, kind, address, created_at)
          select entry.organization_id, 'security_contact.change', o.address, now() - interval '1 microsecond'
          from (select detail #>> '{securityContact,from}' as address) o
          where is_mail_address(o.address) and may_mail_contact(entry.organization_id);
        else
          perform write_mails(entry.organization_id, entry.action, null);
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
          ...keyKinds.filter((kind) => kind !== 'key.change'),
          ...webhookKinds,
          ...logKinds.filter((kind) => kind !== 'audit_log.evidence'),
          ...providerKinds.filter((kind) => kind !== 'sso.accept_passwords'),
        ])}) or new.action = 'sign_in.complete' and new.detail -> 'isNewBrowser' = 'true'
          or new.action = 'key.change' and new.detail -> 'changed' ? 'allowedAddresses'
          or new.action = 'organization.change' and new.detail ? 'securityContact'))
        execute function notify_of_audit_entry();

      -- The other owners are notified of a new and a former one, also by the platform and imports, which write these
      -- tables too. A member who is suspended or has left is none, with any roles.
      create function write_owner_mails(org uuid, what text, concerned text) returns void
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform write_mails(org, what, null, concerned);
      exception when others then
        raise warning 'mails about an owner were not written: %', sqlstate;
      end $$;

      create function notify_of_owner_role() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        changed constant membership_role := case tg_op when 'DELETE' then old else new end;
      begin
        if exists (select from membership m where m.organization_id = changed.organization_id
          and m.person_id = changed.person_id and m.status in ('invited', 'active')) then
          perform write_owner_mails(changed.organization_id,
            case tg_op when 'DELETE' then 'owner.remove' else 'owner.add' end, changed.person_id);
        end if;
        return null;
      end $$;
      create trigger membership_role_notifies_of_owner after insert on membership_role for each row
        when (new.role_id = '${ownerRoleId}') execute function notify_of_owner_role();
      create trigger membership_role_notifies_of_removed_owner after delete on membership_role for each row
        when (old.role_id = '${ownerRoleId}') execute function notify_of_owner_role();

      create function notify_of_owner_status() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if exists (select from membership_role mr where mr.organization_id = new.organization_id
          and mr.person_id = new.person_id and mr.role_id = '${ownerRoleId}') then
          perform write_owner_mails(new.organization_id,
            case when new.status in ('invited', 'active') then 'owner.add' else 'owner.remove' end, new.person_id);
        end if;
        return null;
      end $$;
      create trigger membership_notifies_of_owner after update of status on membership for each row
        when ((old.status in ('invited', 'active')) <> (new.status in ('invited', 'active')))
        execute function notify_of_owner_status();

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

      -- The newest month that has ended both in a zone and in UTC, which a chain's month is in. Null: UTC.
      create function find_ended_month(zone text, moment timestamptz default now()) returns date
      language plpgsql stable set search_path = pg_catalog, public, pg_temp as $$
      declare
        utc constant timestamp := moment at time zone 'UTC';
        zoned timestamp := utc;
      begin
        begin
          zoned := moment at time zone zone;
        exception when invalid_parameter_value then
          -- The console knows a zone that PostgreSQL does not.
        end;
        return date_trunc('month', least(zoned, utc)) - interval '1 month';
      end $$;

      -- What the service finds out now, with the data of its event. A suspension is found for a week, and its
      -- notice is kept for longer.
      create function list_notices() returns table (organization_id uuid, kind text, subject_id uuid, step text,
        data text)
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        select w.organization_id, 'webhook.failing', f.id, to_char(now() at time zone 'UTC', 'YYYY-MM-DD'),
          format('{"webhookId":"%s","failingSince":"%s"}', f.id, api.utc(f.failing_since))
        from list_failing_webhooks(null) f join webhook w on w.id = f.id
        where not exists (select from notice n where n.organization_id = w.organization_id
          and n.kind = 'webhook.failing' and n.subject_id = f.id and n.at > now() - interval '24 hours')
        union all
        select w.organization_id, 'webhook.suspended', w.id, to_char(w.state_at at time zone 'UTC',
            'YYYY-MM-DD HH24:MI:SS.US'),
          format('{"webhookId":"%s","suspendedAt":"%s","reason":"%s"}', w.id, api.utc(w.state_at), w.suspended_reason)
        from webhook w where w.state = 'suspended' and w.state_at > now() - interval '7 days'
        union all
        select k.organization_id, 'key.expiring', e.id,
          (select min(d) from unnest(array[14, 3, 1]) d where e.expires_at <= now() + d * interval '1 day')::text,
          format('{"keyId":"%s","keyPrefix":"%s","expiresAt":"%s"}', e.id, split_part(k.hint, '…', 1),
            api.utc(e.expires_at))
        from list_expiring_keys(null) e join api_key k on k.id = e.id
        union all
        select c.organization_id, 'audit_log.anchor', c.organization_id, to_char(c.month, 'YYYY-MM'), null
        from organization o left join organization_setting s on s.organization_id = o.id
        join audit_chain c on c.organization_id = o.id and c.month = find_ended_month(s.time_zone)
        where c.length > c.dropped_length;
      end;

      -- Records facts that are new, at most so many. Safe to repeat. Returns how many it recorded.
      create function record_notices(at_most integer) returns integer
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        with recorded as (
          insert into notice (organization_id, kind, subject_id, step, data)
          select l.organization_id, l.kind, l.subject_id, l.step, l.data from list_notices() l
          where not exists (select from notice n where n.organization_id = l.organization_id and n.kind = l.kind
            and n.subject_id = l.subject_id and n.step = l.step)
          limit at_most
          on conflict do nothing
          returning 1
        ) select count(*)::integer from recorded;
      end;

      -- The event, its deliveries and the mails, in the transaction of the fact. A webhook gets no event about
      -- itself: it could not deliver one.
      create function notify_of_notice() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if new.data is not null then
          perform record_event(new.organization_id, new.kind, new.data, except_webhook => new.subject_id);
        end if;
        -- A mail that cannot be written fails no event, and no notice of another organization.
        begin
          perform write_mails(new.organization_id, new.kind,
            case new.kind when 'webhook.suspended' then new.subject_id::text end);
        exception when others then
          raise warning 'mails about a notice were not written: %', sqlstate;
        end;
        return null;
      end $$;
      create trigger notice_notifies after insert on notice for each row execute function notify_of_notice();

      -- Counts the facts for the ledger (0010), apart from what writes their events.
      create function count_notices() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        insert into ledger_count (organization_id, changes)
        select n.organization_id, count(*) from after_change n where n.data is not null group by n.organization_id;
        return null;
      end $$;
      create trigger notice_inserts_counted after insert on notice referencing new table as after_change
        for each statement execute function count_notices();
      alter table notice enable always trigger notice_inserts_counted;
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
        anchor jsonb;
      begin
        if m.organization_id is null then
          return case when exists (select from sign_in s where s.person_id = m.person_id)
            then '{"items":[]}'::jsonb end;
        elsif m.kind = 'invitation' then
          select e.expires_at into expires from enrolment e
            where e.organization_id = m.organization_id and e.person_id = m.person_id and e.expires_at > now()
              and encode(e.token_hash, 'hex') = m.about;
          if not found then return null; end if;
        elsif m.person_id is not null and not exists (select from list_mail_members(m.organization_id, m.kind) r
          where r.person_id = m.person_id) then
          return null;
        elsif m.kind = 'audit_log.anchor' then
          select jsonb_build_object('month', to_char(c.month, 'YYYY-MM'), 'position', c.length,
              'hash', encode(c.hash, 'hex')) into anchor from audit_chain c
            where c.organization_id = m.organization_id and c.month = (select to_date(max(n.step), 'YYYY-MM')
              from notice n where n.organization_id = m.organization_id and n.kind = m.kind);
          if not found then return null; end if;
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
              and w.state = case m.kind when 'webhook.suspended' then 'suspended' else 'active' end;
          if not found then return null; end if;
        elsif m.kind like 'key.%' then
          select jsonb_build_array(jsonb_build_object('id', k.id, 'number', k.number)) into items
            from api_key k where k.organization_id = m.organization_id and k.id::text = m.about;
        end if;
        return (select jsonb_build_object('organization', coalesce(s.display_name, o.name), 'registeredName', o.name,
            'timeZone', s.time_zone, 'items', items, 'anchor', anchor,
            'expiresAt', case when expires is not null then api.utc(expires) end)
          from organization o left join organization_setting s on s.organization_id = o.id
          where o.id = m.organization_id);
      end $$;

      create function close_mail(mail_id uuid, outcome text, answer text) returns void
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        update mail set state = outcome, reply = coalesce(answer, reply), settled_at = clock_timestamp(),
          due_at = null, is_ready = false, address = null, sealed = null, facts = null
        where id = mail_id and state = 'waiting';
      end;

      -- Puts mails that are due into their queues, at most a few hundred at once. The clock may have been set
      -- back: before its first attempt a mail waits for ten minutes at most, and later for twelve hours.
      create function ready_mails() returns void
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        update mail set is_ready = true where id in (
          select a.id from (select m.id from mail m where m.state = 'waiting' and not m.is_ready
            and m.due_at <= statement_timestamp()
            order by m.due_at, m.id limit 100 for update skip locked) a
          union all
          select b.id from (select m.id from mail m where m.state = 'waiting' and not m.is_ready and m.attempts = 0
            and m.due_at > statement_timestamp() + interval '10 minutes' and is_due(m.due_at, interval '10 minutes')
            order by m.due_at, m.id limit 100 for update skip locked) b
          union all
          select c.id from (select m.id from mail m where m.state = 'waiting' and not m.is_ready
            and m.due_at > statement_timestamp() + interval '12 hours' and is_due(m.due_at, interval '12 hours')
            order by m.due_at, m.id limit 100 for update skip locked) c
        );
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
        -- The queue of the last attempt.
        last_queue text := (select m.queue from mail m where m.attempted_at is not null
          order by m.attempted_at desc limit 1);
      begin
        perform ready_mails();
        loop
          -- The first mail of the next queue, and after the last queue of the first one again. Each step reads
          -- one entry of an index, whatever waits.
          select m.* into due from mail m where m.is_ready and m.queue > coalesce(last_queue, '')
            order by m.queue, m.due_at, m.id limit 1 for update skip locked;
          if not found then
            select m.* into due from mail m where m.is_ready
              order by m.queue, m.due_at, m.id limit 1 for update skip locked;
          end if;
          exit when not found;
          last_queue := due.queue;
          found_facts := find_mail_facts(due);
          if found_facts is null then
            perform close_mail(due.id, 'dropped', null);
          elsif due.created_at < now() - interval '72 hours' then
            perform close_mail(due.id, 'expired', null);
          else
            return query update mail m set attempts = m.attempts + 1, attempted_at = clock_timestamp(),
                due_at = clock_timestamp() + interval '5 minutes',
                is_ready = false, facts = coalesce(m.facts, found_facts)
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
