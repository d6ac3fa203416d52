import type { Migration } from '@mikro-orm/migrations';

/** An index of a filled table. `on` follows its name, for example `(organization_id, at desc)`. */
interface FilledIndex {
  table: string;
  name: string;
  on: string;
}

/**
 * Builds an index on every partition of a filled table without blocking its writers, for a
 * migration outside a transaction (`isTransactional` false). The next migration then runs
 * `create index name on table …`: PostgreSQL uses the finished parts and builds only those of
 * younger partitions, which are empty.
 *
 * It can be interrupted and run again: unfinished parts are built again. Names and definitions
 * become part of statements, so they must be constants of the migration.
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
