import type { Pool, PoolClient } from 'pg';
import { type CurrentServer, loginOptions, type PostgresServer } from '../server.ts';
import type { PrimaryConnection } from './primary-connection.ts';

/**
 * How soon (ms) the server ends a statement whose connection was closed. It looks only while a
 * statement runs.
 */
const connectionCheckMs = 100;

/** The parameter of a connection with which the server ends the statement of a closed connection. */
export const connectionCheck = { client_connection_check_interval: String(connectionCheckMs) };

/** Returns the signal on which the work that runs is canceled, and its statement ended; undefined: none. */
export type FindSignal = () => AbortSignal | undefined;

/**
 * Makes a pool of `PrimaryConnection` follow what it does not by itself: the login of its server, a server that
 * is unavailable, and the signal of the work that uses a connection. Its `end` may be called twice.
 */
export function adaptPool(pool: Pool, server: CurrentServer, findSignal: FindSignal | undefined): void {
  closeOnFailover(pool);
  followSignals(pool, findSignal);
  if (typeof server === 'function') followLogin(pool, server);
  endOnce(pool);
}

/**
 * Closes all connections of a pool when one of them finds its server unavailable: the idle ones at once,
 * the others when they are returned. So one request fails, and the next gets a new connection.
 */
function closeOnFailover(pool: Pool): void {
  let generation = 0;
  const generations = new WeakMap<PoolClient, number>();
  pool.on('connect', (client) => {
    generations.set(client, generation);
    (client as NodeJS.EventEmitter).on('unavailable', () => {
      if (generations.get(client) !== generation) return;
      generation += 1;
      // Acquiring and returning one is the pool's only way to close an idle connection.
      for (let idle = pool.idleCount; idle > 0; idle -= 1)
        pool.connect().then(
          (acquired) => acquired.release(),
          () => {},
        );
    });
  });
  pool.on('release', (_error, client) => {
    if (generations.get(client) !== generation) client.end().catch(() => {}); // the pool removes it
  });
}

/** Replaces the pool's login, which it reads again for each new connection. */
function followLogin(pool: Pool, server: () => PostgresServer): void {
  const names = Object.keys(loginOptions(server())) as (keyof ReturnType<typeof loginOptions>)[];
  for (const name of names)
    Object.defineProperty(pool.options, name, {
      configurable: true,
      enumerable: name !== 'password',
      get: () => loginOptions(server())[name],
    });
}

type Release = PoolClient['release'];
type Connect = (callback?: (error?: Error, client?: PoolClient, release?: Release) => void) => unknown;

/**
 * Ends the statement of a connection on the signal of the work that acquired it. The connection is
 * closed: a request to cancel could reach the next statement of one that has been returned meanwhile.
 */
function followSignals(pool: Pool, findSignal: FindSignal | undefined): void {
  const connect = pool.connect.bind(pool) as Connect;
  const stopFollowing = new WeakMap<PoolClient, () => void>();
  pool.on('release', (_error, client) => stopFollowing.get(client)?.());

  /** Returns whether the client may be used. It is returned to the pool otherwise. */
  function follow(signal: AbortSignal | undefined, client: PoolClient): boolean {
    if (signal === undefined) return true;
    if (signal.aborted) {
      client.release();
      return false;
    }
    const close = () => (client as PoolClient & PrimaryConnection).socket.destroy();
    signal.addEventListener('abort', close, { once: true });
    stopFollowing.set(client, () => signal.removeEventListener('abort', close));
    return true;
  }

  const connectFollowing: Connect = (callback) => {
    const signal = findSignal?.();
    if (callback !== undefined)
      return connect((error, client, release) => {
        if (client === undefined || follow(signal, client)) callback(error, client, release);
        else callback(signal?.reason);
      });
    return (connect() as Promise<PoolClient>).then((client) => {
      returnWhenLost(client);
      if (follow(signal, client)) return client;
      throw signal?.reason;
    });
  };
  pool.connect = connectFollowing as Pool['connect'];
}

/**
 * Returns a client to its pool when its connection is lost. Kysely does not when the `begin` or
 * `rollback` of a transaction fails, and the pool would have one connection less from then on.
 */
function returnWhenLost(client: PoolClient): void {
  const release = client.release.bind(client);
  let isReturned = false;
  const returnOnce: Release = (error) => {
    if (isReturned) return;
    isReturned = true;
    client.off('end', onLost);
    release(error);
  };
  const onLost = () => returnOnce(true);
  client.once('end', onLost);
  client.release = returnOnce;
}

/** Kysely ends the pool too when it is destroyed. */
function endOnce(pool: Pool): void {
  const end = pool.end.bind(pool) as () => Promise<void>;
  let ended: Promise<void> | undefined;
  pool.end = (() => (ended ??= end())) as Pool['end'];
}
