import { MikroORM, type Options } from '@mikro-orm/postgresql';
import type { Pool } from 'pg';
import { Database, Transaction } from './db/database.ts';
import { Driver } from './db/driver/mikro-orm.ts';
import { adaptPool, connectionCheck, type FindSignal } from './db/driver/pool.ts';
import { PrimaryConnection } from './db/driver/primary-connection.ts';
import {
  type ConnectionSettings,
  type CurrentServer,
  connectionOptions,
  defaultTimes,
  type PostgresServer,
  serverNow,
} from './db/server.ts';
import { entities } from './entities.ts';

/** The longest life of a connection, so that a login that is being replaced is soon unused. */
const lifetimeSeconds = 600;

interface DatabaseOptions {
  server: CurrentServer;
  /** Shown in `pg_stat_activity`. */
  applicationName: string;
  poolMax: number;
  /**
   * How long a request waits for a free connection, and a new connection for its server. A busy node
   * needs seconds for a new one, and a request that would get it must not fail before.
   */
  connectTimeoutMs?: number;
  /** How long a statement may take at the server, and a second more in this process. */
  statementTimeoutMs?: number;
  findSignal?: FindSignal;
}

/**
 * Opens a database without contacting it: connections are made when first needed.
 *
 * The pool is the one that MikroORM creates (`driverOptions.onPoolCreated`), so a process has one
 * set of connections. Plans of prepared statements are generic from the first call on: a statement
 * starts at the index of an organization, or of the work that it looks for, so its plan does not
 * depend on the values, and planning each call took a third of a read's database time. Compiling
 * such statements (`jit`) would take longer than they run.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const {
    connectTimeoutMs = defaultTimes.connectTimeoutMs,
    statementTimeoutMs = defaultTimes.statementTimeoutMs,
    findSignal,
  } = options;
  let pool: Pool | undefined;
  const common = ormOptions(serverNow(options.server), {
    applicationName: options.applicationName,
    connectTimeoutMs,
    statementTimeoutMs,
    queryTimeoutMs: statementTimeoutMs + 1_000,
    parameters: { plan_cache_mode: 'force_generic_plan', jit: 'off', ...connectionCheck },
  });
  const orm = await MikroORM.init({
    ...common,
    pool: { min: 0, max: options.poolMax },
    driverOptions: {
      ...common.driverOptions,
      maxLifetimeSeconds: lifetimeSeconds,
      onPoolCreated: (created: Pool) => {
        pool = created;
        adaptPool(created, options.server, findSignal);
      },
    },
  });
  // MikroORM makes its pool lazily; asking for the client makes it without connecting.
  orm.em.getKysely();
  if (pool === undefined) throw new Error('MikroORM did not hand over its pool');
  const opened = pool;
  return new Database(orm.em.fork() as Transaction, opened, async () => {
    // The pool first: it waits for the statements under way. Kysely would drop a connection that is
    // being made for one, and the pool would wait for it without end.
    await opened.end();
    await orm.close(true);
  });
}

/**
 * Returns the options of every MikroORM instance. Values never reach a log; errors are thrown. The
 * driver's options replace what MikroORM would read from a URL or the environment.
 */
export function ormOptions(server: PostgresServer, connection: ConnectionSettings): Options {
  return {
    driver: Driver,
    entityManager: Transaction,
    dbName: server.database,
    driverOptions: { ...connectionOptions(server, connection), Client: PrimaryConnection },
    entities,
    forceUtcTimezone: true,
    debug: false,
    logger: () => {},
    preferReadReplicas: false,
  };
}
