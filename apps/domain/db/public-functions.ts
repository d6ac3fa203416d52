import type pg from 'pg';

/**
 * PostgreSQL lets every login create large objects, which fill the disk, and take advisory locks,
 * which stop all who need the same one and use memory that all share. Only a superuser can close
 * these functions; `docs/operations/prepare-postgresql.md` has the statements for an owner that is
 * none.
 */
const openFunctionsSql = /* sql */ `
  select p.oid::regprocedure::text as name from pg_proc p
  where p.pronamespace = 'pg_catalog'::regnamespace and p.proname ~ '^(lo_|loread$|lowrite$|pg_(try_)?advisory_)'
    and exists (
      select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
      where a.grantee = 0 and a.privilege_type = 'EXECUTE')
  order by 1`;

/**
 * Closes the functions for large objects and advisory locks to every login, as far as the owner may.
 * Returns those that stay open to all.
 */
export async function closePublicFunctions(owner: pg.Client): Promise<string[]> {
  const open = await listPublicFunctions(owner);
  if (open.length > 0)
    await owner.query(open.map((name) => `revoke execute on function ${name} from public`).join(';'));
  return listPublicFunctions(owner);
}

/** Returns the functions for large objects and advisory locks that every login may call. */
export async function listPublicFunctions(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(openFunctionsSql);
  return rows.map(({ name }) => name);
}
