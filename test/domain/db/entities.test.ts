/** Entities and tables agree. */
import { MikroORM } from '@mikro-orm/postgresql';
import { expect, it } from 'vitest';
import { ormOptions } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { setupDatabase } from '#test/setup.ts';

/** How each side spells the types that both have. */
const sameType: Record<string, string> = {
  timestamptz: 'timestamp with time zone',
  'timestamptz(0)': 'timestamp with time zone',
  'timestamptz(6)': 'timestamp with time zone',
  int: 'integer',
  'text[]': 'ARRAY',
  'cidr[]': 'ARRAY',
  bool: 'boolean',
  bigserial: 'bigint',
};

interface Column {
  name: string;
  type: string;
  nullable: boolean;
  inKey: boolean;
}

it('each entity has the columns, types, nullability and primary key of its table', async () => {
  const { database, owner } = await setupDatabase();
  const orm = await MikroORM.init(ormOptions(parsePostgresUrl(database.ownerUrl), { applicationName: 'test' }));
  try {
    for (const { properties, tableName } of [...orm.getMetadata().getAll().values()]) {
      const ofEntity: Column[] = Object.values(properties)
        .map((property) => ({
          name: property.fieldNames[0] ?? '',
          type: sameType[property.columnTypes[0] ?? ''] ?? property.columnTypes[0] ?? '',
          nullable: property.nullable === true,
          inKey: property.primary === true,
        }))
        .sort((a, b) => (a.name < b.name ? -1 : 1));
      const { rows: ofTable } = await owner.pool.query<Column>(
        `select c.column_name as name, c.data_type as type, c.is_nullable = 'YES' as nullable,
           exists (select from information_schema.table_constraints t
             join information_schema.key_column_usage k using (constraint_schema, constraint_name)
             where t.constraint_type = 'PRIMARY KEY' and t.table_schema = 'public' and t.table_name = c.table_name
               and k.column_name = c.column_name) as "inKey"
         from information_schema.columns c where c.table_schema = 'public' and c.table_name = $1
           and c.is_generated = 'NEVER'
           order by c.column_name collate "C"`,
        [tableName],
      );
      expect({ tableName, columns: ofEntity }).toEqual({ tableName, columns: ofTable });
    }
  } finally {
    await orm.close(true);
  }
});
