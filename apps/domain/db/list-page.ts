// cspell:ignore øłđðı olddi
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
 * Matches a column that contains a text, without regard to case and accents, as people type names
 * on any keyboard; `%` and `_` have no special meaning.
 */
export const contains = (column: string, text: string): RawBuilder<unknown> =>
  sql`strpos(${folded(sql.ref(column))}, ${folded(sql`${text.trim()}::text`)}) > 0`;

/**
 * Folds a text. The columns' "C" collation has lower case for ASCII alone, so the database's own
 * collation is used. Some letters, such as ø, are no letter with an accent.
 */
const folded = (text: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`replace(replace(replace(translate(regexp_replace(normalize(lower(${text} collate "default"), nfd),
    '[\\u0300-\\u036f]', '', 'g'), 'øłđðı', 'olddi'), 'æ', 'ae'), 'œ', 'oe'), 'ß', 'ss')`;
