import type { Migration } from '@mikro-orm/migrations';

/**
 * An index of a table that is filled while partners read: `on` is what follows the table's name,
 * for example `(organization_id, at desc)`.
 */
export interface FilledIndex {
  table: string;
  name: string;
  on: string;
}

/**
 * Builds an index on every partition of a filled table without holding up its writers, for a
 * migration outside of a transaction (`isTransactional` false). The migration after it says
 * `create index name on table …` in the usual way: PostgreSQL takes the finished ones as its parts
 * and builds only those of partitions that are younger, which are empty.
 *
 * May be interrupted and run again: what an earlier run left unfinished is built again. Names and
 * definitions are written into statements, so they are constants of the migration.
 */
export async function buildOnPartitions(migration: Migration, { table, name, on }: FilledIndex): Promise<void> {
  const partitions = (await migration.execute(
    `select c.relname as name, x.indisvalid as valid from pg_inherits i
     join pg_class c on c.oid = i.inhrelid
     left join pg_index x on x.indexrelid = to_regclass(format('%I', c.relname || '_${name}'))
     where i.inhparent = '${table}'::regclass order by c.relname`,
  )) as { name: string; valid: boolean | null }[];
  for (const partition of partitions) {
    const own = `"${partition.name}_${name}"`;
    if (partition.valid === false) await migration.execute(`drop index concurrently ${own}`);
    if (partition.valid !== true)
      await migration.execute(`create index concurrently ${own} on "${partition.name}" ${on}`);
  }
}
