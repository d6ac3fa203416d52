import { type Raw, raw, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import pg from 'pg';
import { BoundArray } from './driver.ts';

export { sql };

/**
 * A part of a statement, written with the tag `sql`: its values are bound, a list becomes as many
 * values, and a part inside another one is inserted. Two values or parts need a space between them:
 * MikroORM reads `??` as a name.
 */
export type SqlPart = Raw;

/** Runs one statement, within the entity manager's transaction if it has one. Returns the rows. */
export function runStatement<Row = unknown>(em: EntityManager, statement: SqlPart): Promise<Row[]> {
  return em.execute(statement) as Promise<unknown[]> as Promise<Row[]>;
}

/** Returns a tag that runs a statement as `runStatement` does. */
export function query<Row = unknown>(em: EntityManager) {
  return (texts: TemplateStringsArray, ...values: unknown[]): Promise<Row[]> => runStatement(em, sql(texts, ...values));
}

/** Returns the time of the database's clock, to the millisecond. */
export async function findDatabaseTime(em: EntityManager): Promise<Date> {
  const [row] = await query<{ at: string }>(em)`select clock_timestamp() as at`;
  return new Date(row?.at ?? Number.NaN);
}

/** Returns a row with these columns as dates, which the connections of the entity manager return as text. */
export function withDates<Row extends object>(row: Row, ...columns: (keyof Row)[]): Row {
  const dates = columns.map((column) => [column, row[column] && new Date(row[column] as string)]);
  return { ...row, ...Object.fromEntries(dates) };
}

/** Joins the conditions that are set with `and`; there is at least one. */
export function allOf(conditions: readonly (SqlPart | null | '')[]): SqlPart {
  const present = conditions.filter((condition) => condition !== null && condition !== '');
  return raw(present.map(() => '?').join(' and '), present);
}

/** Binds values as one PostgreSQL array, for example `any(${arrayOf(ids)}::uuid[])`. */
export function arrayOf(values: readonly unknown[]): SqlPart {
  return raw('?', [new BoundArray(values)]);
}

/**
 * Writes a value into the text, where the planner sees it: plans are generic, and for a parameter
 * the planner finds no partial index and assumes a limit of a tenth of the table. Never use it for
 * a value of a request.
 */
export function literal(value: number | string): SqlPart {
  const text = typeof value === 'number' ? String(value) : pg.escapeLiteral(value);
  return raw(text.replaceAll('?', '\\?'));
}

/** A statement whose text numbers its values (`$1`), as the named statements of the pool do. */
export function numbered(text: string, values: readonly unknown[]): SqlPart {
  return raw(text, [...values]);
}
