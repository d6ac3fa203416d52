import type { Duplex } from 'node:stream';
import pg from 'pg';
import { startMarker } from '../server.ts';
import { leavesServer, messages, pooled, readOnly } from './errors.ts';

/** What PostgreSQL reports at the start of a connection, and when it changes: not the primary. */
const readOnlyParameters = new Set(['in_hot_standby', 'default_transaction_read_only']);

interface ParameterStatus {
  parameterName: string;
  parameterValue: string;
}

/**
 * A connection to PostgreSQL; every connection of every process is one.
 *
 * It is only for the primary: `connect` fails with 25006 at a server that says it is read-only, which
 * costs no round trip. And it is only for one that has the parameters it asked for, which costs
 * one: `connect` fails with 08P01 through a pooler, which rejects or drops them. A
 * `connect` that fails, for any reason, closes the connection. Emits `unavailable` when its server became
 * read-only, ends connections, or does not answer a statement in time. Its errors quote no values.
 */
export class PrimaryConnection extends pg.Client {
  readonly #config: pg.ClientConfig;
  #isReadOnly = false;
  #isConnected = false;

  constructor(config: pg.ClientConfig = {}) {
    super(config);
    this.#config = config;
    // A lost connection fails `connect` and every statement. The event would also end the process of
    // one that does not listen, as a pool while it opens a connection.
    this.on('error', () => {});
    this.#watchQueries();
    // Before `pg` listens, so that no error reaches a caller as the server sent it.
    this.connection.on('errorMessage', (error: pg.DatabaseError) => {
      removeValues(error);
      if (leavesServer(error)) this.emit('unavailable');
    });
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }: ParameterStatus) => {
      if (!readOnlyParameters.has(parameterName) || parameterValue !== 'on') return;
      this.#isReadOnly = true;
      if (this.#isConnected) this.emit('unavailable');
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
    try {
      await super.connect();
      if (this.#isReadOnly)
        throw Object.assign(new Error('the server is read-only, so it is not the primary'), { code: readOnly });
      if (!(await this.#hasItsParameters()))
        throw Object.assign(new Error('a pooler dropped the parameters of the connection'), { code: pooled });
    } catch (error) {
      this.end().catch(() => {});
      throw error;
    }
    this.#isConnected = true;
    return this;
  }

  /** Asks for the marker, because all others may also be the defaults of a server or a login. */
  async #hasItsParameters(): Promise<boolean> {
    const { options, connectionTimeoutMillis } = this.#config;
    if (!options?.includes(startMarker)) return true;
    const { rows } = await this.query<{ value: string | null }>({
      text: `select current_setting('${startMarker}', true) as value`,
      ...(connectionTimeoutMillis && { query_timeout: connectionTimeoutMillis }),
    });
    return rows[0]?.value === 'on';
  }

  /** The connection's socket; of TLS once that is agreed. */
  get socket(): Duplex {
    return this.connection.stream;
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
    if (!(error instanceof Error && error.message === messages.unanswered)) return;
    this.emit('unavailable');
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
