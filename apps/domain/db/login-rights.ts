import type pg from 'pg';

/** The group role of each app. Migration 0014 grants its rights. */
export const groupRoles = {
  api: 'org_api_read',
  worker: 'org_api_worker',
  console: 'org_api_console',
  platform: 'org_api_platform',
  operator: 'org_api_operator',
} as const;

export type LoginRole = keyof typeof groupRoles;

/** The rights that a login has in its server and database, beside those of its groups. */
export interface LoginRights {
  /** A superuser, or one who replicates, creates databases or passes row security. */
  isPowerful: boolean;
  mayCreateRoles: boolean;
  isOwner: boolean;
  groups: string[];
}

export async function readLoginRights(client: pg.Client): Promise<LoginRights> {
  const { rows } = await client.query<LoginRights>(
    `select r.rolsuper or r.rolcreatedb or r.rolreplication or r.rolbypassrls as "isPowerful",
       r.rolcreaterole or r.rolsuper as "mayCreateRoles", d.datdba = r.oid as "isOwner",
       array(select g.rolname::text from pg_auth_members m join pg_roles g on g.oid = m.roleid
         where m.member = r.oid order by 1) as groups
     from pg_roles r, pg_database d where r.rolname = session_user and d.datname = current_database()`,
  );
  const [rights] = rows;
  if (rights === undefined) throw new Error('PostgreSQL does not list the login that is connected');
  return rights;
}
