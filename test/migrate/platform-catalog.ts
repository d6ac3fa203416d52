import type pg from 'pg';

/** A function of schema `platform` that its login may call. */
export interface CatalogFunction {
  name: string;
  /** As `pg_get_function_arguments` shows them. */
  arguments: string[];
  comment: string | null;
  /** The codes that it raises, also by those that it calls, in alphabetical order. */
  codes: string[];
}

/** Returns the functions that the platform's login may call, with the codes of their sources. */
export async function readPlatformFunctions(owner: Pick<pg.Pool, 'query'>): Promise<CatalogFunction[]> {
  const { rows } = await owner.query<{
    name: string;
    signature: string;
    source: string;
    comment: string | null;
    open: boolean;
  }>(
    `select p.proname as name, pg_get_function_arguments(p.oid) as signature, p.prosrc as source,
       obj_description(p.oid, 'pg_proc') as comment,
       has_function_privilege('org_api_platform', p.oid, 'execute') as open
     from pg_proc p where p.pronamespace = 'platform'::regnamespace order by 1`,
  );
  const sources = new Map(
    // A time that may lie ahead is not rejected for it.
    rows.map(({ name, source }) => [name, source.replaceAll(/check_time\([^()]*, true\)/g, 'check_argument()')]),
  );
  const listCodes = (name: string): string[] => {
    const source = sources.get(name) ?? '';
    const called = [...source.matchAll(/platform\.(\w+)\(/g)].map(([, other = '']) => other);
    const raised = [...source.matchAll(/platform\.reject\('(\w+)'/g)].map(([, code = '']) => code);
    return [...new Set([...raised, ...called.filter((other) => other !== name).flatMap(listCodes)])].sort();
  };
  return rows
    .filter(({ open }) => open)
    .map(({ name, signature, comment }) => ({
      name,
      arguments: signature.split(', '),
      comment,
      codes: listCodes(name),
    }));
}

/** Returns the columns of the views of schema `platform`, in their order. */
export async function readPlatformViews(owner: Pick<pg.Pool, 'query'>) {
  const { rows } = await owner.query<{ view: string; is: string; column: string; type: string; text: string }>(
    `select c.relname as view, obj_description(c.oid, 'pg_class') as is, a.attname as column,
       format_type(a.atttypid, null) as type, col_description(c.oid, a.attnum) as text
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
     where c.relnamespace = 'platform'::regnamespace order by 1, a.attnum`,
  );
  return Map.groupBy(rows, ({ view }) => view);
}
