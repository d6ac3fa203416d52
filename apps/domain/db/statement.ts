import { type Raw, raw } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';

export { sql } from '@mikro-orm/core';

/**
 * A part of a statement, written with the tag `sql`: its values are bound, a list becomes as many
 * values, and a part inside another one is put in its place. Two values or parts never stand side
 * by side without a space: MikroORM reads `??` as a name.
 */
export type SqlPart = Raw;

/**
 * Runs one statement and returns its rows. Inside a transaction of the entity manager it is part of
 * that transaction; otherwise it has a connection of the pool.
 */
export function runStatement<Row = unknown>(em: EntityManager, statement: SqlPart): Promise<Row[]> {
  return em.execute(statement) as Promise<unknown[]> as Promise<Row[]>;
}

/** Joins conditions with `and`; there is at least one. */
export function allOf(conditions: readonly SqlPart[]): SqlPart {
  return raw(conditions.map(() => '?').join(' and '), [...conditions]);
}
