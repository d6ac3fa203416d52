import { type RawBuilder, sql } from 'kysely';
import type { Transaction } from './database.ts';

/** Returns the time of the database's clock, to the millisecond. */
export async function findDatabaseTime(tx: Transaction): Promise<Date> {
  const [row] = await tx.query(sql<{ at: string }>`select clock_timestamp() as at`);
  return new Date(row?.at ?? Number.NaN);
}

/** Returns a row with these columns as dates, which the connections of the pool return as text. */
export function withDates<Row extends object>(row: Row, ...columns: (keyof Row)[]): Row {
  const dates = columns.map((column) => [column, row[column] && new Date(row[column] as string)]);
  return { ...row, ...Object.fromEntries(dates) };
}

/** Joins the conditions that are set with `and`; there is at least one. */
export const joinConditions = (conditions: readonly (RawBuilder<unknown> | null | '')[]): RawBuilder<unknown> =>
  sql.join(
    conditions.filter((condition) => condition !== null && condition !== ''),
    sql` and `,
  );
