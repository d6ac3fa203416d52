import { type SqlPart, sql } from '../db/statement.ts';

/**
 * One page of a list that is paged by key. `next` is the key that the following page begins after;
 * null: there is none.
 */
export interface ListPage<Row> {
  rows: Row[];
  next: string | null;
}

/** A page of rows of which one more than the page's size was asked for. */
export function pageOf<Row>(found: readonly Row[], pageSize: number, keyOf: (row: Row) => string): ListPage<Row> {
  const rows = found.slice(0, pageSize);
  const last = rows.at(-1);
  return { rows, next: found.length > pageSize && last !== undefined ? keyOf(last) : null };
}

/** What is searched for, as it is compared. */
export const bareWord = (text: string): string => text.trim();

/**
 * Whether a column contains a text, without regard to case; `%` and `_` are letters like others.
 * "C" knows the case of ASCII alone, so the database's own collation compares.
 */
export const contains = (column: string, text: string): SqlPart =>
  sql`strpos(lower(${sql.ref(column)} collate "default"), lower(${bareWord(text)}::text collate "default")) > 0`;
