import type { EntityManager } from '@mikro-orm/postgresql';
import type { Pool } from 'pg';

/** The pool below each connection of MikroORM. */
const pools = new WeakMap<object, Pool>();

/** Returns the pool of an entity manager, for libraries that run their own statements. */
export function poolOf(em: EntityManager): Pool {
  const pool = pools.get(em.getConnection());
  if (pool === undefined) throw new Error('the entity manager is not of an open database');
  return pool;
}

/** Keeps the pool of a database that is opened, for `poolOf`. */
export function rememberPool(em: EntityManager, pool: Pool): void {
  pools.set(em.getConnection(), pool);
}
