import { MikroORM, type Options } from '@mikro-orm/postgresql';
import type { Pool } from 'pg';
import { parseIntoClientConfig } from 'pg-connection-string';
import { Driver } from './driver.ts';
import { entities } from './entities/index.ts';
import { leaveServersAway, Session } from './session.ts';

/** An open database: the entity manager, and the `pg` pool below it for prepared statements. */
export interface Database {
  readonly orm: MikroORM;
  readonly pool: Pool;
  close(): Promise<void>;
}

/** A URL, or a function that returns it: each new connection uses the login of that moment. */
export type DatabaseUrl = string | (() => string);

export const urlNow = (url: DatabaseUrl): string => (typeof url === 'string' ? url : url());

/** The longest life of a connection, so that a login that is being replaced is soon unused. */
const lifetimeSeconds = 600;

interface DatabaseOptions {
  /** A `postgresql://` URL of one login. */
  url: DatabaseUrl;
  /** Shown in `pg_stat_activity`. */
  applicationName: string;
  poolMax: number;
  /** How long a request waits for a free connection, and a new connection for its server. */
  connectTimeoutMs?: number;
  /** How long a statement may take at the server, and a second more in this process. */
  statementTimeoutMs?: number;
}

/**
 * Opens a database without contacting it: connections are made when first needed.
 *
 * The pool is the one that MikroORM creates (`driverOptions.onPoolCreated`), so a process has one
 * set of connections. Plans of prepared statements are generic from the first call on: each
 * statement starts at an organization's index, so its plan does not depend on the values, and
 * planning each call took a third of a read's database time. Compiling such statements (`jit`)
 * would take longer than they run.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { connectTimeoutMs = 2_000, statementTimeoutMs = 5_000 } = options;
  let pool: Pool | undefined;
  const common = ormOptions(urlNow(options.url));
  const orm = await MikroORM.init({
    ...common,
    pool: { min: 0, max: options.poolMax },
    driverOptions: {
      ...common.driverOptions,
      application_name: options.applicationName,
      connectionTimeoutMillis: connectTimeoutMs,
      statement_timeout: statementTimeoutMs,
      query_timeout: statementTimeoutMs + 1_000,
      options: '-c plan_cache_mode=force_generic_plan -c jit=off',
      keepAlive: true,
      maxLifetimeSeconds: lifetimeSeconds,
      onPoolCreated: (created: Pool) => {
        pool = created;
        leaveServersAway(created);
        if (typeof options.url === 'function') takeLoginFrom(created, options.url);
      },
    },
  });
  // MikroORM makes its pool lazily; asking for the client makes it without connecting.
  orm.em.getKysely();
  if (pool === undefined) throw new Error('MikroORM did not hand over its pool');
  const opened = pool;
  return {
    orm,
    pool: opened,
    // MikroORM ends the pool only when one of its own queries has used it.
    async close() {
      await orm.close(true);
      if (!opened.ended) await opened.end();
    },
  };
}

/** Replaces the pool's login, which it reads again for each new connection. */
function takeLoginFrom(pool: Pool, url: () => string): void {
  const login = (part: 'username' | 'password') => decodeURIComponent(new URL(url())[part]);
  Object.defineProperties(pool.options, {
    user: { configurable: true, enumerable: true, get: () => login('username') },
    password: { configurable: true, enumerable: false, get: () => login('password') },
  });
}

/** Returns the options of every MikroORM instance. Values never reach a log; errors are thrown. */
export function ormOptions(url: string): Options {
  return {
    driver: Driver,
    clientUrl: url,
    // MikroORM drops the URL's parameters, and with `sslmode` it would drop TLS without a word.
    driverOptions: { Client: Session, ssl: parseIntoClientConfig(url).ssl },
    entities,
    forceUtcTimezone: true,
    debug: false,
    logger: () => {},
    preferReadReplicas: false,
  };
}
