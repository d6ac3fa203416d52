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

/** A table that a login may write, with the columns of each right and their types. */
export interface WritableTable {
  login: string;
  table: string;
  /** The columns of the primary key, which name a row; empty when the login may not read them. */
  key: string[];
  inserts: { name: string; type: string }[];
  updates: { name: string; type: string }[];
  deletes: boolean;
}

/** Returns the tables that each login may write. */
export async function listTables(pool: Pool, logins: readonly string[]): Promise<WritableTable[]> {
  const columns = (right: string) => `array(select json_build_object('name', a.attname, 'type',
      format_type(a.atttypid, null)) from pg_attribute a
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      and has_column_privilege(l.login, c.oid, a.attnum, '${right}') order by a.attnum)`;
  const { rows } = await pool.query<WritableTable>(
    `select l.login, c.relname as table, ${columns('insert')} as inserts, ${columns('update')} as updates,
       has_table_privilege(l.login, c.oid, 'delete') as deletes,
       array(select a.attname::text from pg_index i join pg_attribute a on a.attrelid = c.oid
           and a.attnum = any (i.indkey)
         where i.indrelid = c.oid and i.indisprimary
           and has_column_privilege(l.login, c.oid, a.attnum, 'select')) as key
     from unnest($1::text[]) as l (login) cross join pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
     order by 1, 2`,
    [logins],
  );
  return rows.filter(({ inserts, updates, deletes }) => inserts.length + updates.length > 0 || deletes);
}
