import { MikroORM, type Options } from '@mikro-orm/postgresql';
import type { Pool } from 'pg';
import { entities } from './entities/index.ts';

/** A database opened for an app: the entity manager for writes, and the `pg` pool below it for named prepared statements. */
export interface Database {
  readonly orm: MikroORM;
  readonly pool: Pool;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  /** A `postgresql://` URL of one login. */
  url: string;
  /** Shown in `pg_stat_activity`. */
  applicationName: string;
  poolMax: number;
  /** How long a request waits for a free connection, and a new connection for its server. */
  connectTimeoutMs?: number;
  /** How long one statement may take, at the server and (a second more) at this end, so that a stopped server cannot hold a request. */
  statementTimeoutMs?: number;
}

/**
 * Opens a database without contacting it: connections are made when first needed.
 *
 * The pool is the one MikroORM makes (`driverOptions.onPoolCreated`): one set of connections a process, for both.
 * Plans of prepared statements are generic from the first call on: every statement of ours starts at an organization's
 * index, so its plan never depends on the values, and planning each call anew cost a third of a read's database time.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { connectTimeoutMs = 2_000, statementTimeoutMs = 5_000 } = options;
  let pool: Pool | undefined;
  const orm = await MikroORM.init({
    ...ormOptions(options.url),
    pool: { min: 0, max: options.poolMax },
    driverOptions: {
      application_name: options.applicationName,
      connectionTimeoutMillis: connectTimeoutMs,
      statement_timeout: statementTimeoutMs,
      query_timeout: statementTimeoutMs + 1_000,
      options: '-c plan_cache_mode=force_generic_plan',
      keepAlive: true,
      onPoolCreated: (created: Pool) => {
        pool = created;
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

/** What every MikroORM of ours has in common: the entities, UTC, and silence (errors reach the caller; values never reach a log). */
export function ormOptions(url: string): Options {
  return {
    clientUrl: url,
    entities,
    forceUtcTimezone: true,
    debug: false,
    logger: () => {},
    preferReadReplicas: false,
  };
}
