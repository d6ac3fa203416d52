import type { Client } from 'pg';
import type { Item } from './document-reader.ts';
import { formats, type Kind, type KindFormat } from './format.ts';

export type Staging = Awaited<ReturnType<typeof openStaging>>;

/**
 * Creates temporary tables, one per kind, that hold the checked objects of a document until all of
 * it is read. They end with the transaction. A row contains its position in the document, so that a
 * check in SQL can name the path.
 */
export async function openStaging(client: Client) {
  const kinds = Object.entries(formats) as [Kind, KindFormat][];
  for (const [, format] of kinds) {
    await client.query(`create temp table ${format.table} (${listColumns(format).join(', ')}) on commit drop`);
  }
  const batches = new Map<Kind, Record<string, unknown>[]>(kinds.map(([kind]) => [kind, []]));
  const counts = new Map<Kind, number>();

  return {
    /** The number of objects added so far, by kind. */
    counts: counts as ReadonlyMap<Kind, number>,

    add(item: Item<Kind>, value: Record<string, unknown>): void {
      const format = formats[item.kind];
      const row: Record<string, unknown> = {};
      for (const [index, name] of format.positions.entries()) row[name] = item.at[index];
      for (const [name, field] of Object.entries(format.fields)) {
        if (field.column === undefined) continue;
        row[columnName(field.column)] = field.staged === undefined ? value[name] : field.staged(value[name]);
      }
      batches.get(item.kind)?.push(row);
      counts.set(item.kind, (counts.get(item.kind) ?? 0) + 1);
    },

    /** Sends what was added since the last call, one statement per kind. */
    async flush(): Promise<void> {
      for (const [kind, rows] of batches) {
        if (rows.length === 0) continue;
        await client.query(buildInsert(formats[kind]), [JSON.stringify(rows)]);
        rows.length = 0;
      }
    },
  };
}

function listColumns(format: KindFormat): string[] {
  const fields = Object.values(format.fields).flatMap(({ column }) => column ?? []);
  return [...format.positions.map((name) => `${name} integer`), ...fields];
}

function buildInsert(format: KindFormat): string {
  const columns = listColumns(format);
  const names = columns.map(columnName).join(', ');
  return `insert into ${format.table} (${names}) select ${names}
    from json_to_recordset($1::json) as r (${columns.join(', ')})`;
}

function columnName(definition: string): string {
  return definition.split(' ', 1)[0] ?? definition;
}
