/** What a login of the database may do, from the catalog. */
import type { Pool } from 'pg';

/** A function that a login may execute: its name and the types of what it takes. */
export interface CallableFunction {
  login: string;
  name: string;
  types: string[];
}

/** Returns the functions of the schemas of the service that each login may execute. */
export async function listFunctions(pool: Pool, logins: readonly string[]): Promise<CallableFunction[]> {
  const { rows } = await pool.query<CallableFunction>(
    `select l.login, p.oid::regproc::text as name,
       array(select format_type(a.type, null)
         from unnest(p.proargtypes::oid[]) with ordinality a (type, n) order by n) as types
     from unnest($1::text[]) as l (login) cross join pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where n.nspname in ('public', 'api') and p.prokind = 'f' and p.prorettype <> 'trigger'::regtype
       and has_function_privilege(l.login, p.oid, 'execute') and has_schema_privilege(l.login, n.oid, 'usage')
     order by 1, 2`,
    [logins],
  );
  return rows;
}
