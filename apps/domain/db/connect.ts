import { MikroORM, type Options } from '@mikro-orm/postgresql';
import type { Pool } from 'pg';
import { parseIntoClientConfig } from 'pg-connection-string';
import { Driver } from './driver.ts';
import { entities } from './entities/index.ts';

/**
 * A database opened for an app: the entity manager for writes, and the `pg` pool below it for named
 * prepared statements.
 */
export interface Database {
  readonly orm: MikroORM;
  readonly pool: Pool;
  close(): Promise<void>;
}

/**
 * A URL, or where to look it up: each new connection then takes user and password as they are at
 * that moment.
 */
export type DatabaseUrl = string | (() => string);

export const urlNow = (url: DatabaseUrl): string => (typeof url === 'string' ? url : url());

/**
 * A connection lives no longer (seconds), so that a login that is being replaced falls out of use.
 */
const lifetimeSeconds = 600;

export interface DatabaseOptions {
  /** A `postgresql://` URL of one login. */
  url: DatabaseUrl;
  /** Shown in `pg_stat_activity`. */
  applicationName: string;
  poolMax: number;
  /** How long a request waits for a free connection, and a new connection for its server. */
  connectTimeoutMs?: number;
  /**
   * How long one statement may take, at the server and (a second more) at this end, so that a
   * stopped server cannot hold a request.
   */
  statementTimeoutMs?: number;
}

/**
 * Opens a database without contacting it: connections are made when first needed.
 *
 * The pool is the one MikroORM makes (`driverOptions.onPoolCreated`): one set of connections a
 * process, for both. Plans of prepared statements are generic from the first call on: every
 * statement of ours starts at an organization's index, so its plan never depends on the values, and
 * planning each call anew cost a third of a read's database time.
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
      options: '-c plan_cache_mode=force_generic_plan',
      keepAlive: true,
      maxLifetimeSeconds: lifetimeSeconds,
      onPoolCreated: (created: Pool) => {
        pool = created;
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
    // MikroORM ends the pool only when a query of its own has used it.
    async close() {
      await orm.close(true);
      if (!opened.ended) await opened.end();
    },
  };
}

/** The pool reads its options anew for every connection that it makes. */
function takeLoginFrom(pool: Pool, url: () => string): void {
  const login = (part: 'username' | 'password') => decodeURIComponent(new URL(url())[part]);
  Object.defineProperties(pool.options, {
    user: { configurable: true, enumerable: true, get: () => login('username') },
    password: { configurable: true, enumerable: false, get: () => login('password') },
  });
}

/**
 * What every MikroORM of ours has in common: the entities, UTC, and silence (errors reach the
 * caller; values never reach a log).
 */
export function ormOptions(url: string): Options {
  return {
    driver: Driver,
    clientUrl: url,
    // MikroORM drops the URL's parameters, and with `sslmode` it would drop TLS without a word.
    driverOptions: { ssl: parseIntoClientConfig(url).ssl },
    entities,
    forceUtcTimezone: true,
    debug: false,
    logger: () => {},
    preferReadReplicas: false,
  };
}
