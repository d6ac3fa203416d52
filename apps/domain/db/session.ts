import pg, { type Pool, type PoolClient } from 'pg';
import { leavesServer, readOnly, unanswered } from './server-away.ts';

/** What PostgreSQL reports at the start of a session, and when it changes: not the primary. */
const readOnlyParameters = new Set(['in_hot_standby', 'default_transaction_read_only']);

interface ParameterStatus {
  parameterName: string;
  parameterValue: string;
}

/**
 * A connection to PostgreSQL; every connection of every process is one.
 *
 * It is only for the primary: `connect` fails with 25006 at a server that says it is read-only, which
 * costs no round trip. Emits `away` when its server became read-only, ends sessions, or does not
 * answer a statement in time. Its errors quote no values.
 */
export class Session extends pg.Client {
  #isReadOnly = false;
  #isConnected = false;

  constructor(config?: pg.ClientConfig) {
    super(config);
    this.#watchQueries();
    // Before `pg` listens, so that no error reaches a caller as the server sent it.
    this.connection.on('errorMessage', (error: pg.DatabaseError) => {
      removeValues(error);
      if (leavesServer(error)) this.emit('away');
    });
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }: ParameterStatus) => {
      if (!readOnlyParameters.has(parameterName) || parameterValue !== 'on') return;
      this.#isReadOnly = true;
      if (this.#isConnected) this.emit('away');
    });
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error | null, client: pg.Client) => void): void;
  override connect(callback?: (error: Error | null, client: pg.Client) => void): Promise<pg.Client> | undefined {
    const connected = this.#connectToPrimary();
    if (callback === undefined) return connected;
    connected.then(
      () => callback(null, this),
      (error: Error) => callback(error, this),
    );
    return undefined;
  }

  async #connectToPrimary(): Promise<pg.Client> {
    await super.connect();
    if (this.#isReadOnly) {
      this.end().catch(() => {});
      throw Object.assign(new Error('the server is read-only, so it is not the primary'), { code: readOnly });
    }
    this.#isConnected = true;
    return this;
  }

  /** Returns the start of the connection without what `pg` takes from PGREPLICATION. */
  getStartupConf(): object {
    const { getStartupConf } = pg.Client.prototype as unknown as { getStartupConf: () => { replication?: string } };
    const { replication: _, ...settings } = getStartupConf.call(this);
    return settings;
  }

  #watchQueries(): void {
    const send = this.query.bind(this) as (...args: unknown[]) => unknown;
    const query = (...args: unknown[]): unknown => {
      const callback = args.at(-1);
      if (typeof callback === 'function')
        args[args.length - 1] = (error: unknown, result: unknown) => {
          this.#onResult(error);
          callback(error, result);
        };
      const result = send(...args);
      if (!(result instanceof Promise)) return result;
      return result.catch((error: unknown) => {
        this.#onResult(error);
        throw error;
      });
    };
    this.query = query as typeof this.query;
  }

  /** Ends the connection when the server did not answer: its response may come after the next query. */
  #onResult(error: unknown): void {
    if (!(error instanceof Error && error.message === unanswered)) return;
    this.emit('away');
    this.end().catch(() => {});
  }
}

/** Removes what may quote values from an error: the detail, and the message of class 22. */
function removeValues(error: pg.DatabaseError): void {
  for (const name of ['detail', 'hint', 'where', 'internalQuery'] as const) error[name] = undefined;
  if (!error.code?.startsWith('22')) return;
  error.message = `the database rejected a value (${error.code})`;
  const calls = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  error.stack = [String(error), ...calls].join('\n');
}

/**
 * Closes all connections of a pool when one of them finds its server away: the idle ones at once,
 * the others when they are released. So one request fails, and the next gets a new connection.
 */
export function leaveServersAway(pool: Pool): void {
  let generation = 0;
  const generations = new WeakMap<PoolClient, number>();
  pool.on('connect', (client) => {
    generations.set(client, generation);
    (client as NodeJS.EventEmitter).on('away', () => {
      if (generations.get(client) !== generation) return;
      generation += 1;
      // Acquiring and releasing is the pool's only way to close an idle connection.
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
