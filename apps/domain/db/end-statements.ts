import { AsyncLocalStorage } from 'node:async_hooks';
import type { Socket } from 'node:net';
import type { Pool, PoolClient } from 'pg';

const signals = new AsyncLocalStorage<AbortSignal>();

/**
 * Runs work whose statements are not needed after the signal: the one that runs is ended, and no
 * further one begins. Then the work fails with the signal's reason, or because its connection was
 * closed.
 */
export const endStatementsOn = <Result>(signal: AbortSignal, work: () => Result): Result => signals.run(signal, work);

/** Returns the signal of the work that runs, for its requests to other servers; undefined: none. */
export const endingSignal = (): AbortSignal | undefined => signals.getStore();

/** Messages of `pg` for a statement whose connection was closed in this process. */
const closed = /Connection terminated|is not queryable/;

/** Returns whether work failed because its signal ended its statements, and for no other reason. */
export const isEndedBy = (signal: AbortSignal, error: unknown): boolean =>
  signal.aborted &&
  (error === signal.reason ||
    (error instanceof Error && (closed.test(error.message) || isEndedBy(signal, error.cause))));

/**
 * How soon (ms) the server ends a statement whose connection was closed. It looks only while a
 * statement runs.
 */
const connectionCheckMs = 100;

/** The parameter of a session with which the server ends the statement of a closed connection. */
export const connectionCheck = { client_connection_check_interval: String(connectionCheckMs) };

type Release = PoolClient['release'];
type Connect = (callback?: (error?: Error, client?: PoolClient, release?: Release) => void) => unknown;

/**
 * Makes a pool follow `endStatementsOn`. It closes the connection: a request to cancel could reach
 * the next statement of a connection that has been returned meanwhile.
 */
export function followSignals(pool: Pool): void {
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
    const close = () => (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
    signal.addEventListener('abort', close, { once: true });
    stopFollowing.set(client, () => signal.removeEventListener('abort', close));
    return true;
  }

  const connectFollowing: Connect = (callback) => {
    const signal = signals.getStore();
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
