/** One page of a list. `next`: the key after which the following page begins; null at the end. */
export interface ListPage<Row> {
  rows: Row[];
  next: string | null;
}

/** Returns the page of rows that were queried with one more than its size. */
export function buildPage<Row>(
  found: readonly Row[],
  pageSize: number,
  getCursor: (row: Row) => string,
): ListPage<Row> {
  const rows = found.slice(0, pageSize);
  const last = rows.at(-1);
  return { rows, next: found.length > pageSize && last !== undefined ? getCursor(last) : null };
}
