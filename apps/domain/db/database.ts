import { EntityManager } from '@mikro-orm/postgresql';
import type { CompiledQuery, RawBuilder } from 'kysely';
import type { Pool } from 'pg';

/** The entity manager of one transaction, with its own entities. It also runs statements. */
export class Transaction extends EntityManager {
  /**
   * Runs a statement and returns its rows. The tag `sql` of Kysely binds each value, a list as one
   * PostgreSQL array; `CompiledQuery.raw` takes a text that numbers its values.
   */
  async query<Row = unknown>(statement: RawBuilder<Row> | CompiledQuery<Row>): Promise<Row[]> {
    const kysely = this.getKysely();
    const { rows } = 'sql' in statement ? await kysely.executeQuery(statement) : await statement.execute(kysely);
    return rows;
  }
}

type Read = 'find' | 'findOne' | 'findOneOrFail' | 'count';

/** What reads: a database, or a transaction of it. */
export type Queryable = Pick<Transaction, 'query' | Read>;

/**
 * An open database. Rules that change rows use `change`; a read outside a transaction is a statement
 * of its own, with entities of its own, on any connection.
 */
export class Database implements Queryable {
  readonly #em: Transaction;
  /** The connections below, for named statements, libraries and metrics (ADR 0103). */
  readonly pool: Pool;
  readonly close: () => Promise<void>;

  constructor(em: Transaction, pool: Pool, close: () => Promise<void>) {
    this.#em = em;
    this.pool = pool;
    this.close = close;
  }

  /** Runs `work` in a transaction, which commits when `work` resolves and is rolled back otherwise. */
  change<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    return this.#em.fork().transactional(work);
  }

  /** Runs a statement as `Transaction.query` does, and commits it. */
  query<Row = unknown>(statement: RawBuilder<Row> | CompiledQuery<Row>): Promise<Row[]> {
    return this.#em.query(statement);
  }

  readonly find = this.#alone('find');
  readonly findOne = this.#alone('findOne');
  readonly findOneOrFail = this.#alone('findOneOrFail');
  readonly count = this.#alone('count');

  /** Returns the entity manager's method, for one call. */
  #alone<Name extends Read>(name: Name): Transaction[Name] {
    const call = (...given: unknown[]) => {
      const em = this.#em.fork();
      return Reflect.apply(em[name], em, given);
    };
    return call as Transaction[Name];
  }
}
