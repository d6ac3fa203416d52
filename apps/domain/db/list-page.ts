import { type RawBuilder, sql } from 'kysely';

/** One page of a list. `next`: the key after which the following page begins; null at the end. */
export interface ListPage<Row> {
  rows: Row[];
  next: string | null;
}

/** Returns the page of rows that were queried with one more than its size. */
export function pageOf<Row>(found: readonly Row[], pageSize: number, keyOf: (row: Row) => string): ListPage<Row> {
  const rows = found.slice(0, pageSize);
  const last = rows.at(-1);
  return { rows, next: found.length > pageSize && last !== undefined ? keyOf(last) : null };
}

/**
 * Matches a column that contains a text, without regard to case; `%` and `_` have no special
 * meaning. The columns' "C" collation folds ASCII alone, so the database's own collation compares.
 */
export const contains = (column: string, text: string): RawBuilder<unknown> =>
  sql`strpos(lower(${sql.ref(column)} collate "default"), lower(${text.trim()}::text collate "default")) > 0`;
