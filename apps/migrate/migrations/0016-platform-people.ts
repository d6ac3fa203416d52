import { Migration } from '@mikro-orm/migrations';
import { putFunction } from './put-function.ts';

/** The platform's functions and views of organizations, roles, members and families. */
export class PlatformPeople extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      -- Two organizations with one new slug: the second waits here, and is rejected by a code instead of the
      -- unique index, whose error has the slug. All slugs share 256 locks, because an import may add many.
      insert into named_lock select 'slug.' || part from generate_series(0, 255) as part;
      create function lock_slug(slug text) returns void
      language plpgsql volatile set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform from named_lock l where l.name = 'slug.' || get_byte(sha256(convert_to(slug, 'UTF8')), 0) for update;
      end $$;
      create function organization_slug_is_locked() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform lock_slug(new.slug);
        return new;
      end $$;
      create trigger organization_slug_is_locked before insert or update of slug on organization
        for each row execute function organization_slug_is_locked();

      -- An organization has a plan from its beginning, so that its first seat needs no other call.
      create function platform.put_organization(organization uuid, name text, slug text, kind text,
        status text default 'active', created_at timestamptz default null) returns text
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_variable
      declare
        stored public.organization;
        differing text[];
      begin
        perform platform.check_call(array['organization', 'name', 'slug', 'kind', 'status'],
          array[organization is null, name is null, slug is null, kind is null, status is null]);
        perform platform.check_text('name', name, 10000);
        perform platform.check_argument('slug', slug collate "C" ~ '^[a-z0-9][a-z0-9._-]{0,254}$',
          'At most 255 lower-case letters, digits and . _ -, the first of them a letter or a digit.');
        perform platform.check_text('status', status, 255);
        perform platform.check_choice('kind', kind,
          array['direct', 'law_firm', 'mediation', 'legal_aid', 'court', 'nonprofit', 'other']);
        perform platform.check_time('created_at', created_at, true);
        perform from organization o where o.id = organization for no key update;
        perform lock_slug(slug);
        if exists (select from organization o where o.slug = put_organization.slug and o.id <> organization) then
          perform platform.reject('slug_taken', '23505', 'another organization has this slug', 'slug',
            'Use another slug.');
        end if;
        insert into organization (id, name, slug, kind, status, created_at)
          values (organization, name, slug, kind, status, coalesce(created_at, now())) on conflict (id) do nothing;
        if found then
          insert into seat_plan (organization_id) values (organization);
          perform platform.record_change(organization, 'put_organization', '{"created": true}');
          return 'created';
        end if;
        select * into strict stored from organization o where o.id = organization for no key update;
        differing := array_remove(array[case when stored.name <> name then 'name' end,
          case when stored.slug <> slug then 'slug' end, case when stored.kind <> kind then 'kind' end,
          case when stored.status <> status then 'status' end,
          case when stored.created_at <> created_at then 'created_at' end], null);
        if differing = '{}' then return 'unchanged'; end if;
        update organization o set name = put_organization.name, slug = put_organization.slug,
          kind = put_organization.kind, status = put_organization.status,
          created_at = coalesce(put_organization.created_at, o.created_at) where o.id = organization;
        perform platform.record_change(organization, 'put_organization', jsonb_build_object('changed', differing));
        return 'changed';
      end $$;
    `);

    this.addSql(
      putFunction({
        noun: 'role',
        table: 'role',
        key: 'region',
        required: { key: 'text', name: 'text', description: 'text', permissions: 'text[]' },
        checks: /* sql */ `
      perform platform.check_text('key', key, 255);
      perform platform.check_text('name', name, 10000);
      perform platform.check_argument('description', length(description) <= 10000, 'At most 10,000 characters.');
      perform platform.check_list('permissions', permissions,
        (select r.permissions from role r where r.organization_id is null and r.key = 'owner'));`,
        rules: /* sql */ `
      if exists (select from role r where r.key = put_role.key and r.id <> put_role.id
        and coalesce(r.organization_id, organization) = organization) then
        perform platform.reject('key_taken', '23505', 'another role has this key', 'key', 'Use another key.');
      end if;`,
        idInLog: 'roleId',
      }),
    );

    this.addSql(/* sql */ `
      -- Those who left keep no role. Who is still a member loses it by platform.put_member first.
      create function platform.delete_role(organization uuid, id uuid) returns text
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_variable
      declare
        stored public.role;
        holders bigint;
      begin
        perform platform.check_call(array['organization', 'id'], array[organization is null, id is null]);
        perform platform.lock_organization(organization);
        select * into stored from role r where r.id = delete_role.id;
        if not found then return 'unchanged'; end if;
        if stored.organization_id is distinct from organization then
          perform platform.reject('no_such_role', 'P0002', 'the organization has no such role', delete_role.id::text,
            case when stored.organization_id is null then 'It is a role of the system, which stays.'
              else format('It is a role of organization %s.', stored.organization_id) end);
        end if;
        delete from membership_role mr using membership m
          where mr.organization_id = organization and mr.role_id = delete_role.id
            and m.organization_id = mr.organization_id and m.person_id = mr.person_id and m.status = 'left';
        select count(*) into holders from membership_role mr where mr.role_id = delete_role.id;
        if holders > 0 then
          perform platform.reject('role_in_use', '23514', 'members have the role', format('members: %s', holders),
            'Remove it from them with platform.put_member first.');
        end if;
        -- Before the role goes, so that the entry has its name.
        perform platform.record_change(organization, 'delete_role', jsonb_build_object('roleId', id));
        delete from role r where r.id = delete_role.id;
        return 'changed';
      end $$;

      -- The form in which addresses are compared. PostgreSQL has no IDNA, so that the domain is in
      -- ASCII here; the import converts it.
      create function platform.canonical_address(email text) returns text
      language sql immutable parallel safe return lower(btrim(email) collate "C");

      -- \`roles\` are the keys of all that the member has afterwards.
      create function platform.put_member(organization uuid, member text, name text, email text, roles text[],
        title text default null, status text default 'active') returns text
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_variable
      declare
        stored public.membership;
        address constant text := platform.canonical_address(email);
        nth bigint;
        had uuid[];
        has uuid[];
        differing text[];
        about jsonb := jsonb_build_object('memberId', member);
      begin
        perform platform.check_call(array['organization', 'member', 'name', 'email', 'roles', 'status'],
          array[organization is null, member is null, name is null, email is null, roles is null, status is null]);
        perform platform.check_text('member', member, 255);
        perform platform.check_text('name', name, 10000);
        perform platform.check_argument('title', length(title) <= 10000, 'At most 10,000 characters.');
        perform platform.check_choice('status', status, array['invited', 'active', 'suspended', 'left']);
        perform platform.check_list('roles', roles, null);
        perform platform.check_argument('email', length(address) <= 254 and address ~
          '^[!-?A-~]{1,64}@([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z][a-z0-9-]*[a-z0-9]$',
          'A complete address of ASCII characters, its domain in the form xn--….');
        perform platform.lock_organization(organization);
        has := array(select r.id from role r where r.key = any (roles)
          and coalesce(r.organization_id, organization) = organization order by r.id);
        select min(k.n) into nth from unnest(roles) with ordinality as k (key, n)
          where k.key not in (select r.key from role r where r.id = any (has));
        if nth is not null then
          perform platform.reject('no_such_role', 'P0002', 'the organization has no such role',
            format('roles[%s]', nth - 1), format('Name roles by their keys, and not by their ids: select key '
              'from platform.role where organization is null or organization = ''%s''. platform.put_role creates one.',
              organization));
        end if;
        insert into person (id) values (member) on conflict do nothing;
        insert into membership (organization_id, person_id, name, email, title, status)
          values (organization, member, name, address, title, status) on conflict do nothing;
        if found then
          insert into membership_role (organization_id, person_id, role_id) select organization, member, unnest(has);
          perform platform.record_change(organization, 'put_member', about || '{"created": true}');
          return 'created';
        end if;
        select * into strict stored from membership m where m.organization_id = organization and m.person_id = member
          for no key update;
        had := array(select mr.role_id from membership_role mr where mr.organization_id = organization
          and mr.person_id = member order by mr.role_id);
        differing := array_remove(array[case when stored.name <> name then 'name' end,
          case when stored.email <> address then 'email' end,
          case when stored.title is distinct from title then 'title' end,
          case when stored.status <> status then 'status' end, case when had <> has then 'roles' end], null);
        if differing = '{}' then return 'unchanged'; end if;
        update membership m set name = put_member.name, email = address, title = put_member.title,
          status = put_member.status
          where m.organization_id = organization and m.person_id = member and differing <> array['roles'];
        delete from membership_role mr where mr.organization_id = organization and mr.person_id = member
          and mr.role_id <> all (has);
        insert into membership_role (organization_id, person_id, role_id)
          select organization, member, role_id from unnest(has) as role_id where role_id <> all (had);
        -- The form that record_rename (0012) looks for.
        if 'name' = any (differing) then
          about := about || jsonb_build_object('renamed',
            jsonb_build_object('from', left(stored.name, 1000), 'to', left(name, 1000)));
        end if;
        perform platform.record_change(organization, 'put_member', about || jsonb_build_object('changed', differing));
        return 'changed';
      end $$;
    `);

    this.addSql(
      putFunction({
        noun: 'family',
        table: 'family',
        key: 'organization',
        required: { name: 'text' },
        checks: `perform platform.check_text('name', name, 10000);`,
        // An erasure of the family that runs at this moment is waited for.
        rules: /* sql */ `
      perform from family f where f.organization_id = organization and f.id = put_family.id for no key update;
      perform platform.reject_erased(id);`,
      }),
    );

    this.addSql(/* sql */ `
      create view platform.organization as
        select id as organization, name, slug, kind, status, created_at from public.organization;
      create view platform.role as
        select organization_id as organization, id, key, name, description, permissions from public.role;
      create view platform.member as
        select m.organization_id as organization, m.person_id as member, m.name, m.email, m.title, m.status,
          array(select r.key from public.membership_role mr join public.role r on r.id = mr.role_id
            where mr.organization_id = m.organization_id and mr.person_id = m.person_id order by r.key) as roles
        from public.membership m;
      create view platform.family as
        select organization_id as organization, id, name from public.family;
      grant select on platform.organization, platform.role, platform.member, platform.family to org_api_platform;
      grant execute on function platform.put_organization, platform.put_role, platform.delete_role,
        platform.put_member, platform.put_family to org_api_platform;
    `);
  }
}
