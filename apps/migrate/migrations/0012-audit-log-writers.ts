import { Migration } from '@mikro-orm/migrations';

/** What members do in the console, on their organization. */
const memberActions = [
  'key.create',
  'key.change',
  'key.rotate',
  'key.revoke',
  'key.report',
  'webhook.create',
  'webhook.change',
  'webhook.rotate_secret',
  'webhook.test',
  'webhook.tested',
  'webhook.pause',
  'webhook.resume',
  'webhook.delete',
  'webhook.redeliver',
  'webhook.cancel_redelivery',
  'webhook.verify',
  'delivery.redeliver',
  'delivery.retry',
  'delivery.cancel',
  'member.invite',
  'member.link',
  'member.join',
  'member.change',
  'member.suspend',
  'member.reinstate',
  'member.remove',
  'member.role_assign',
  'member.role_unassign',
  'role.create',
  'role.change',
  'role.delete',
  'seat.give',
  'seat.end',
  'grant.end',
  'grant.move',
  'sign_in.confirm',
  'organization.change',
  'sso.set',
  'sso.require',
  'sso.remove',
  'audit_log.download',
  'audit_log.evidence',
];

/** What people do in the console on their own sign-in, in each organization's audit log. */
const signInActions = [
  'sign_in.recover',
  'sign_in.complete',
  'sign_in.step_up',
  'factor.add',
  'factor.remove',
  'recovery_codes.renew',
  'password.change',
  'sign_in.link_provider',
  'sign_in.unlink_provider',
  'session.end',
  'session.end_others',
];

/** What only operators do, at the command line. */
const orgctlActions = [
  'probe.create',
  'session.end_all',
  'sign_in.change_address',
  'sign_in.free_address',
  'webhook.detach',
];

const objectActions = [
  'webhook.create',
  'webhook.change',
  'webhook.rotate_secret',
  'webhook.pause',
  'webhook.resume',
  'webhook.detach',
  'webhook.delete',
  'delivery.cancel',
];

const listed = (actions: readonly string[]) => actions.map((action) => `'${action}'`).join(', ');

/**
 * The writers of the audit log beside the API (0013): one function for each kind, with the
 * actions that it may write. No login may insert an entry itself, so none writes a time, another
 * writer's action, or the name of a person whom the database does not know to be there.
 */
export class AuditLogWriters extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create function reject_audit_entry(action text) returns void language plpgsql
      set search_path = pg_catalog, public, pg_temp as $$
      begin
        raise exception 'this writer may not record this action, or not in this name'
          using errcode = 'check_violation', constraint = 'audit_entry_writer', detail = action;
      end $$;

      -- The console writes in the name of a member who is signed in now. Sessions may be idle for 30
      -- minutes (identity/limits.ts), and a request may last some more. A failure to sign in, which
      -- needs no session, names the person whose sign-in it was. Members who remove or suspend
      -- themselves have no access any more when their entry is written: their session has ended.
      create function record_console_entry(organization uuid, person text, key uuid, done text, client inet,
        about jsonb) returns void
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        membership_status text;
        is_confirmed boolean;
        has_session boolean;
        has_full_session boolean;
        is_signed_in boolean;
      begin
        select m.status, exists (select from sign_in_confirmation c
          where c.person_id = m.person_id and c.organization_id = m.organization_id)
          into membership_status, is_confirmed
          from membership m where m.organization_id = organization and m.person_id = person;
        select count(*) > 0, bool_or(s.state = 'full'), bool_or(s.state = 'full' and s.expires_at > now())
          into has_session, has_full_session, is_signed_in
          from console_session s where s.person_id = person and s.last_seen_at > now() - interval '35 minutes';
        if (case
          when done in ('member.remove', 'member.suspend') and about ->> 'memberId' = person
            then has_full_session
              and membership_status = case done when 'member.remove' then 'left' else 'suspended' end
          when done in (${listed(memberActions)})
            then membership_status = 'active' and is_confirmed and is_signed_in
          when done in (${listed(signInActions)}) then is_confirmed and is_signed_in
          when done in ('sign_in.password', 'sign_in.provider', 'session.sign_out', 'session.end_oldest')
            then is_confirmed and has_session
          when done = 'sign_in.failure' then is_confirmed
        end and (key is null or exists (select from api_key k
          where k.id = key and k.organization_id = organization))) is not true
        then
          perform reject_audit_entry(done);
        end if;
        insert into audit_entry (organization_id, person_id, key_id, action, address, detail)
          values (organization, person, key, done, client, about);
      end $$;

      -- An operator at the command line has the login of the owner, and names no person.
      create function record_orgctl_entry(organization uuid, key uuid, done text, about jsonb) returns void
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if done not in (${listed([...memberActions, ...orgctlActions])}) then perform reject_audit_entry(done); end if;
        insert into audit_entry (organization_id, key_id, action, detail) values (organization, key, done, about);
      end $$;

      -- The Kubernetes operator writes what an object did with the webhook that it manages. One delivery
      -- is cancelled by people only, so that its entry remains their proof.
      create function record_object_entry(organization uuid, done text, about jsonb) returns void
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if (done in (${listed(objectActions)}) and not (done = 'delivery.cancel' and about ? 'eventId') and exists (
          select from webhook w
          where w.organization_id = organization and w.id::text = about ->> 'webhookId'
            and w.managed_by = about ->> 'managedBy')) is not true
        then
          perform reject_audit_entry(done);
        end if;
        insert into audit_entry (organization_id, action, detail) values (organization, done, about);
      end $$;

      -- The worker writes what the system did with a webhook of the organization.
      create function record_worker_entry(organization uuid, done text, about jsonb) returns void
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if (done in ('webhook.suspend', 'webhook.verified', 'delivery.cancel')
          and not about ?| array['eventId', 'managedBy'] and exists (select from webhook w
            where w.organization_id = organization and w.id::text = about ->> 'webhookId')) is not true
        then
          perform reject_audit_entry(done);
        end if;
        insert into audit_entry (organization_id, action, detail) values (organization, done, about);
      end $$;

      -- The import writes what it changed of an organization.
      create function record_import_entry(organization uuid, done text, about jsonb) returns void
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if (done in ('import', 'import.backfill') and not about ? 'managedBy'
          and exists (select from organization o where o.id = organization)) is not true
        then
          perform reject_audit_entry(done);
        end if;
        insert into audit_entry (organization_id, action, detail) values (organization, done, about);
      end $$;

      grant execute on function record_console_entry to org_api_console;
      grant execute on function record_object_entry to org_api_operator;
      grant execute on function record_worker_entry to org_api_worker;
      grant execute on function record_import_entry to org_api_import;
    `);

    // No member is renamed without an entry. The console writes it, in the name of who did it. What
    // no entry says at the commit, an entry without a person says, whichever login renamed. Names
    // are shortened as in membership.entity.ts: an entry has a bound.
    this.addSql(/* sql */ `
      create function record_rename() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        renamed constant jsonb := jsonb_build_object('from', left(old.name, 1000), 'to', left(new.name, 1000));
      begin
        if not exists (select from audit_entry a
          where a.organization_id = new.organization_id and a.at = now()
            and a.detail ->> 'memberId' = new.person_id and a.names -> 'renamed' = renamed)
        then
          insert into audit_entry (organization_id, action, detail)
          values (new.organization_id, 'member.change', jsonb_build_object('memberId', new.person_id,
            'changed', array['name'], 'renamed', renamed));
        end if;
        return null;
      end $$;
      create constraint trigger record_rename after update of name on membership deferrable initially deferred
        for each row when (old.name is distinct from new.name) execute function record_rename();
    `);

    // Whether the worker or the console ends a redelivery, its entry says so.
    this.addSql(/* sql */ `
      create function record_redelivery_end() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        insert into audit_entry (organization_id, action, detail)
        values (new.organization_id, 'webhook.redelivered', jsonb_strip_nulls(jsonb_build_object(
          'webhookId', new.webhook_id, 'redeliveryId', new.id, 'state', new.state, 'reason', new.end_reason,
          'seen', new.seen, 'queued', new.queued)));
        return null;
      end $$;
      create trigger record_redelivery_end after update of state on redelivery for each row
        when (old.finished_at is null and new.finished_at is not null) execute function record_redelivery_end();
    `);
  }
}
