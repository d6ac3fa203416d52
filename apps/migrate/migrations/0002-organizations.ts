import { Migration } from '@mikro-orm/migrations';

/**
 * Organizations, their people and roles. Ids and keys by which rows are ordered are `collate "C"`, by
 * code point in any database locale. Lists by name are ordered as people do, by `und-x-icu`, also in
 * any locale.
 */
export class Organizations extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create table organization (
        id uuid primary key default new_id(),
        name text not null constraint organization_name_not_empty check (name <> ''),
        slug text not null
          constraint organization_slug_unique unique
          -- As URLs and sign-in forms have it: no two differ in case only.
          constraint organization_slug_form check (slug collate "C" ~ '^[a-z0-9][a-z0-9._-]{0,254}$'),
        kind text not null constraint organization_kind_known
          check (kind in ('direct', 'law_firm', 'mediation', 'legal_aid', 'court', 'nonprofit', 'other')),
        status text not null constraint organization_status_not_empty check (status <> ''),
        created_at timestamptz not null default now()
      );

      -- A person who signs in. One person may be a member of several organizations; their name in
      -- an organization is a column of the membership.
      create table person (
        id text collate "C" primary key constraint person_id_not_empty check (id <> ''),
        created_at timestamptz not null default now()
      );

      create table membership (
        organization_id uuid not null constraint membership_organization references organization,
        person_id text collate "C" not null constraint membership_person references person,
        name text collate "C" not null constraint membership_name_not_empty check (name <> ''),
        email text not null constraint membership_email_not_empty check (email <> ''),
        title text,
        status text not null
          constraint membership_status_known check (status in ('invited', 'active', 'suspended', 'left')),
        -- False from an invitation until its member has used the link, also while they are
        -- suspended: until then the organization sees nothing of their other memberships, and
        -- suspending and reinstating them does not complete the membership. A trigger sets it, so
        -- that neither the import nor the platform can skip it.
        accepted boolean not null default true,
        primary key (organization_id, person_id)
      );
      -- The first 100 characters: an index row ends at 2,704 bytes, and an imported name may have
      -- 10,000 characters.
      create index membership_by_name on membership (organization_id, left(name, 100) collate "und-x-icu", person_id);

      -- System roles have no organization; every organization has them. Custom roles may not use
      -- the key of a system role.
      create table role (
        id uuid primary key default new_id(),
        organization_id uuid constraint role_organization references organization,
        key text collate "C" not null constraint role_key_not_empty check (key <> ''),
        name text collate "C" not null,
        description text not null,
        permissions text[] not null constraint role_permissions_known check (permissions <@ array[
          'org.read', 'org.clients.read', 'org.members.read', 'org.analytics.read', 'org.referrals.manage',
            'org.roles.read',
          'org.billing.manage', 'org.keys.manage', 'org.webhooks.manage', 'org.members.manage', 'org.roles.manage',
          'org.seats.manage', 'org.activity.read']),
        position smallint,
        constraint role_key_unique unique nulls not distinct (organization_id, key),
        constraint role_system_has_position check ((organization_id is null) = (position is not null)),
        constraint role_system_key_reserved
          check ((organization_id is null) = (key in ('owner', 'admin', 'billing', 'analyst', 'member')))
      );

      create table membership_role (
        organization_id uuid not null,
        person_id text collate "C" not null,
        role_id uuid not null constraint membership_role_role references role,
        primary key (organization_id, person_id, role_id),
        constraint membership_role_membership
          foreign key (organization_id, person_id) references membership on delete cascade
      );
      create index membership_role_by_role on membership_role (role_id);
    `);

    // The changes of an organization's members, roles, keys and webhooks lock its row. The logins
    // that make them have no right to change it, which a lock would require of them.
    this.addSql(/* sql */ `
      create function lock_organization(organization uuid) returns void
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform from public.organization o where o.id = organization for no key update;
      end $$;
      grant execute on function lock_organization to org_api_console, org_api_operator;
    `);

    // Runs on every write of the status, including those of the import and the platform.
    this.addSql(/* sql */ `
      create function membership_accepted() returns trigger
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
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
    `);

    // A foreign key cannot express "of this organization or of none", so a trigger does.
    this.addSql(/* sql */ `
      create function membership_role_same_organization() returns trigger
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        if not exists (select from role r where r.id = new.role_id
          and coalesce(r.organization_id, new.organization_id) = new.organization_id) then
          raise exception 'the role is neither a system role nor one of this organization'
            using errcode = 'check_violation', constraint = 'membership_role_same_organization';
        end if;
        return null;
      end $$;
      create constraint trigger membership_role_same_organization after insert or update on membership_role
        for each row execute function membership_role_same_organization();
    `);

    // owner and admin have every permission. That an admin may not change owners is a rule of the
    // console, not a permission.
    this.addSql(/* sql */ `
      insert into role (id, organization_id, key, name, description, permissions, position)
      select s.id::uuid, null, s.key, s.name, s.description, s.permissions, s.position
      from (values
        ('0a1f0000-0000-7000-8000-000000000001', 'owner', 'Owner', 'Everything, owners included.', array[
          'org.read', 'org.clients.read', 'org.members.read', 'org.analytics.read', 'org.referrals.manage',
            'org.roles.read', 'org.billing.manage',
          'org.keys.manage', 'org.webhooks.manage', 'org.members.manage', 'org.roles.manage', 'org.seats.manage',
            'org.activity.read'], 1),
        ('0a1f0000-0000-7000-8000-000000000002', 'admin', 'Administrator', 'Everything but owners.', array[
          'org.read', 'org.clients.read', 'org.members.read', 'org.analytics.read', 'org.referrals.manage',
            'org.roles.read', 'org.billing.manage',
          'org.keys.manage', 'org.webhooks.manage', 'org.members.manage', 'org.roles.manage', 'org.seats.manage',
            'org.activity.read'], 2),
        ('0a1f0000-0000-7000-8000-000000000003', 'billing', 'Billing', 'Seats, subscriptions and invoices.', array[
          'org.read', 'org.billing.manage', 'org.seats.manage'], 3),
        ('0a1f0000-0000-7000-8000-000000000004', 'analyst', 'Analyst', 'De-identified outcomes.', array[
          'org.read', 'org.analytics.read'], 4),
        ('0a1f0000-0000-7000-8000-000000000005', 'member', 'Member', 'The organization, its people and its roster.',
          array[
          'org.read', 'org.clients.read', 'org.members.read', 'org.roles.read'], 5)
      ) as s (id, key, name, description, permissions, position);
    `);

    // Only migrations may change system roles: a login with this right could change what members of
    // every organization may do. Policies do not apply to the table's owner.
    this.addSql(/* sql */ `
      alter table role enable row level security;
      create policy role_is_read on role for select using (true);
      create policy role_of_organization on role using (organization_id is not null)
        with check (organization_id is not null);
    `);
  }
}
