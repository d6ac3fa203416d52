/**
 * Reads rights from the catalog, and from the file that lists them, in the same form: one line per
 * right.
 */
import { readFileSync } from 'node:fs';
import type pg from 'pg';

/**
 * Every right of a role other than the owner on an object of the database:
 * `grantee object right column`. The column is `*` for a right on the whole object. Relations of
 * schemas `api` and `platform` are listed column by column, because the right to a view's columns matters.
 */
const rightsSql = /* sql */ `
  with held as (
    select a.grantee, d.datdba as owner, 'database' as object, a.privilege_type, null as column_name
    from pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a where d.datname = current_database()
    union all
    select a.grantee, n.nspowner, 'schema ' || n.nspname, a.privilege_type, null
    from pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
    where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
    union all
    select a.grantee, c.relowner, n.nspname || '.' || c.relname, a.privilege_type, v.attname
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
      cross join aclexplode(coalesce(c.relacl, acldefault(case c.relkind when 'S' then 's'
        else 'r' end::"char", c.relowner))) a
      left join pg_attribute v on n.nspname in ('api', 'platform') and v.attrelid = c.oid and v.attnum > 0
        and not v.attisdropped
    where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
    union all
    select a.grantee, c.relowner, n.nspname || '.' || c.relname, a.privilege_type, t.attname
    from pg_attribute t join pg_class c on c.oid = t.attrelid
      join pg_namespace n on n.oid = c.relnamespace, aclexplode(t.attacl) a
    where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and not t.attisdropped
    union all
    select a.grantee, p.proowner, n.nspname || '.' || p.proname || '()', a.privilege_type, null
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace, aclexplode(coalesce(p.proacl, acldefault('f',
      p.proowner))) a
    where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
      or p.proname ~ '^(lo_|loread$|lowrite$|pg_(try_)?advisory_)'
    union all
    select a.grantee, t.typowner, 'type ' || n.nspname || '.' || t.typname, a.privilege_type, null
    from pg_type t join pg_namespace n on n.oid = t.typnamespace, aclexplode(t.typacl) a
    where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
    union all
    select a.grantee, d.defaclrole, 'new ' || d.defaclobjtype::text, a.privilege_type, null
      from pg_default_acl d, aclexplode(d.defaclacl) a
    union all
    select m.member, null, 'member of ' || g.rolname, 'MEMBER', null from pg_auth_members m
    join pg_roles g on g.oid = m.roleid join pg_roles r on r.oid = m.member
    where g.rolname ~ '^org_api_' and (r.rolname ~ '^org_api_(read|worker|console|platform|import|backfill|operator)$'
      or r.rolname = any ($1))
  )
  select format('%s %s %s %s', coalesce(r.rolname, 'public'), replace(h.object, ' ', '~'), lower(h.privilege_type),
    coalesce(h.column_name, '*')) as line
  from held h left join pg_roles r on r.oid = h.grantee
  where h.grantee is distinct from h.owner
  group by 1 order by 1`;

/**
 * Returns the rights in the catalog of a database. `logins` maps the names of login roles to their
 * names in the list.
 */
export async function listRights(client: pg.Client, logins: Readonly<Record<string, string>>): Promise<string[]> {
  const { rows } = await client.query<{ line: string }>(rightsSql, [Object.keys(logins)]);
  const named = rows.map(({ line }) => {
    const [grantee = '', object = '', right = '', column = ''] = line.split(' ');
    const name = logins[grantee] ?? grantee.replace(/^org_api_/, '');
    return `${name} ${object.replaceAll('~', ' ').replace('member of org_api_', 'member of ')}: ${right} ${column}`;
  });
  return named.sort();
}

/**
 * Returns the rights of rights.txt, which explains its format.
 * @throws when a line is invalid or repeats another.
 */
export function readRights(file = new URL('rights.txt', import.meta.url)): string[] {
  const lines: string[] = [];
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line.startsWith('#') || line.trim() === '') continue;
    const [grantee, object, rights] = line.split(/ {2,}/);
    if (grantee === undefined || object === undefined || rights === undefined) throw new Error(`rights.txt: ${line}`);
    for (const [, right, columns] of rights.matchAll(/([a-z]+)(?: \(([^)]*)\))?/g))
      for (const column of columns?.split(', ') ?? ['*']) lines.push(`${grantee} ${object}: ${right} ${column}`);
  }
  const twice = lines.find((line, index) => lines.indexOf(line) !== index);
  if (twice !== undefined) throw new Error(`rights.txt says twice: ${twice}`);
  return lines.sort();
}
