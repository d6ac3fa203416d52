import type { Database, Transaction } from './database.ts';

/** What is used of a client of node-postgres. */
interface PostgresClient {
  query(sql: string, values?: unknown[]): Promise<{ rowCount: number | null }>;
  release(error?: boolean): void;
}

/** Returns the port for PostgreSQL: `postgres(new pg.Pool())`. `transaction.client` is for your own statements. */
export function postgres<Client extends PostgresClient>(pool: {
  connect(): Promise<Client>;
}): Database<Transaction & { client: Client }> {
  return {
    async transaction(work) {
      const client = await pool.connect();
      let isUsable = false;
      try {
        await client.query('begin');
        const result = await work({ client, execute: (sql, values) => run(client, sql, values) });
        await client.query('commit');
        isUsable = true;
        return result;
      } catch (error) {
        isUsable = await client.query('rollback').then(
          () => true,
          () => false,
        );
        throw error;
      } finally {
        client.release(!isUsable);
      }
    },
  };
}

async function run(client: PostgresClient, sql: string, values: readonly unknown[]): Promise<number> {
  let count = 0;
  const numbered = sql.replace(/\?/g, () => {
    count += 1;
    return `$${count}`;
  });
  return (await client.query(numbered, [...values])).rowCount ?? 0;
}

/** What is used of a connection of mysql2/promise. */
interface MysqlConnection {
  query(sql: string, values?: unknown[]): Promise<[unknown, unknown]>;
  beginTransaction(): Promise<void>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  release(): void;
  destroy(): void;
}

/** Returns the port for MySQL and MariaDB: `mysql(createPool())` of mysql2/promise. */
export function mysql<Connection extends MysqlConnection>(pool: {
  getConnection(): Promise<Connection>;
}): Database<Transaction & { connection: Connection }> {
  return {
    dialect: 'mysql',
    async transaction(work) {
      const connection = await pool.getConnection();
      try {
        await connection.beginTransaction();
        const execute = async (sql: string, values: readonly unknown[]) => {
          const [result] = await connection.query(sql, [...values]);
          return (result as { affectedRows: number }).affectedRows;
        };
        const result = await work({ connection, execute });
        await connection.commit();
        connection.release();
        return result;
      } catch (error) {
        await connection.rollback().then(
          () => connection.release(),
          () => connection.destroy(),
        );
        throw error;
      }
    },
  };
}

/** What is used of a database of node:sqlite, or of better-sqlite3. */
interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): { run(...values: (string | number)[]): { changes: number | bigint } };
}

/** The end of the last transaction of each connection of SQLite, which has one at a time. */
const lastOfConnection = new WeakMap<SqliteDatabase, Promise<unknown>>();

/** Returns the port for SQLite: `sqlite(new DatabaseSync(file))`. Transactions wait for each other. */
export function sqlite<Db extends SqliteDatabase>(database: Db): Database<Transaction & { database: Db }> {
  const execute = async (sql: string, values: readonly (string | number)[]) =>
    Number(database.prepare(sql).run(...values).changes);
  return {
    transaction(work) {
      const next = (lastOfConnection.get(database) ?? Promise.resolve()).then(async () => {
        database.exec('begin immediate');
        try {
          const result = await work({ database, execute });
          database.exec('commit');
          return result;
        } catch (error) {
          database.exec('rollback');
          throw error;
        }
      });
      lastOfConnection.set(
        database,
        next.catch(() => {}),
      );
      return next;
    },
  };
}
