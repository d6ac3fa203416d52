import { setTimeout as wait } from 'node:timers/promises';
import { Client } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { backoffMs } from '#runtime/flow/backoff.ts';
import { IntervalLoop } from '#runtime/flow/interval-loop.ts';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import {
  connectionOptions,
  describeRejection,
  describeUnavailable,
  isNotFound,
  isRejection,
  isUnanswered,
  rejects,
} from '#workflows/connection.ts';
import { startDeadlineMs } from './times.ts';

interface ConnectOptions {
  server: TemporalServer;
  /** Ends the attempts to connect. */
  signal: AbortSignal;
  /** Called after every failure with a sentence: the reason and the remedy. */
  onProblem: (sentence: string) => void;
}

const tryTimeoutMs = 5_000;
const firstWaitMs = 250;
const longestWaitMs = 5_000;

/**
 * Connects to Temporal and tries again until it answers for the namespace, which a development
 * server creates after its start. Returns null once `signal` aborts.
 */
export async function connectToTemporal(options: ConnectOptions): Promise<NativeConnection | null> {
  const { signal, onProblem } = options;
  const aborted = new Promise<null>((resolve) => {
    if (signal.aborted) resolve(null);
    else signal.addEventListener('abort', () => resolve(null), { once: true });
  });
  for (let failures = 0; !signal.aborted; failures += 1) {
    const trying = connectOnce(options.server);
    const result = await Promise.race([trying, aborted]);
    if (result === null) {
      void trying.then((late) => (typeof late === 'string' ? undefined : late.close())).catch(() => {});
      return null;
    }
    if (typeof result !== 'string') return result;
    const waitMs = backoffMs(firstWaitMs, longestWaitMs, failures);
    onProblem(`${result}; tried again in ${waitMs / 1000} s`);
    await wait(waitMs, undefined, { signal, ref: false }).catch(() => {});
  }
  return null;
}

/** Returns a connection, or a sentence that says what is wrong. */
async function connectOnce(server: TemporalServer): Promise<NativeConnection | string> {
  const { address, namespace } = server;
  const connection = await connect(server);
  if (typeof connection === 'string') return connection;
  try {
    await connection.withDeadline(Date.now() + tryTimeoutMs, () =>
      connection.workflowService.describeNamespace({ namespace }),
    );
    return connection;
  } catch (error) {
    await connection.close();
    if (isNotFound(error))
      return (
        `Temporal at ${address} has no namespace ${namespace}: make it (temporal operator namespace create ` +
        `--namespace ${namespace}), or correct TEMPORAL_NAMESPACE`
      );
    if (isRejection(error)) return describeRejection(server);
    return (
      `Temporal at ${address} does not answer for the namespace ${namespace}: see whether it is healthy and ` +
      'lets the worker in'
    );
  }
}

/** Returns a connection, or what is wrong. A connection that arrives too late is closed. */
async function connect(server: TemporalServer): Promise<NativeConnection | string> {
  const connecting = NativeConnection.connect(connectionOptions(server)).catch(() => null);
  const result = await Promise.race([connecting, wait(tryTimeoutMs, null, { ref: false })]);
  if (result !== null) return result;
  void connecting.then((connection) => connection?.close()).catch(() => {});
  if (await rejects(server)) return describeRejection(server);
  return `${describeUnavailable(server)}: start it, or correct TEMPORAL_ADDRESS or the settings of TEMPORAL_TLS`;
}

/** After how many calls in a row without an answer another connection is opened. */
const unansweredAtMost = 2;

interface LinkOptions {
  server: TemporalServer;
  /**
   * Called with the connection that replaces the one before, which is closed afterwards.
   *
   * @throws when the worker has ended: the one before stays.
   */
  onReplaced: (connection: NativeConnection) => void;
  onProblem: (sentence: string) => void;
}

/**
 * Calls Temporal over a connection that it owns and replaces when calls in a row get no answer: a
 * network may drop a connection's packets without ending it, and the SDK notices that after 45 s.
 */
export class TemporalLink {
  readonly #options: LinkOptions;
  #connection: NativeConnection;
  #client: Client;
  #unanswered = 0;
  #replacing: Promise<void> | null = null;
  #isClosed = false;

  constructor(connection: NativeConnection, options: LinkOptions) {
    this.#options = options;
    this.#connection = connection;
    this.#client = this.#createClient();
  }

  get connection(): NativeConnection {
    return this.#connection;
  }

  /** Resolves with what `send` does, within the deadline of a request to Temporal. @throws its error. */
  async call<Result>(send: (client: Client) => Promise<Result>): Promise<Result> {
    const [connection, client] = [this.#connection, this.#client];
    let isUnansweredCall = false;
    try {
      return await connection.withDeadline(Date.now() + startDeadlineMs, () => send(client));
    } catch (cause) {
      isUnansweredCall = isUnanswered(cause);
      throw cause;
    } finally {
      if (connection === this.#connection) this.#count(isUnansweredCall);
    }
  }

  /** Waits for a replacement in progress, and closes the connection. Its worker has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#replacing;
    await this.#connection.close();
  }

  #count(isUnansweredCall: boolean): void {
    this.#unanswered = isUnansweredCall ? this.#unanswered + 1 : 0;
    if (this.#unanswered < unansweredAtMost) return;
    this.#unanswered = 0;
    this.#replacing ??= this.#replace()
      .catch(() => this.#options.onProblem('a connection to Temporal could not be closed: it ends with the process'))
      .finally(() => {
        this.#replacing = null;
      });
  }

  async #replace(): Promise<void> {
    const { server, onReplaced, onProblem } = this.#options;
    const opened = await connectOnce(server);
    if (typeof opened === 'string') return onProblem(`${opened}; tried again after ${unansweredAtMost} more calls`);
    if (this.#isClosed) return opened.close();
    try {
      onReplaced(opened);
    } catch {
      return opened.close();
    }
    const before = this.#connection;
    this.#connection = opened;
    this.#client = this.#createClient();
    onProblem(`${unansweredAtMost} calls in a row got no answer, and another connection does: it replaces the old one`);
    await before.close();
  }

  #createClient(): Client {
    return new Client({ connection: this.#connection, namespace: this.#options.server.namespace });
  }
}

/** How often the API key in its file is set on the connection. */
const apiKeyEveryMs = 2_000;

/**
 * Keeps the API key of a link's connection current with its file. It is set without a comparison: a
 * connection that was opened while the key changed may have the one before.
 */
export function followApiKey(
  link: TemporalLink,
  { apiKey }: TemporalServer,
  onProblem: (sentence: string) => void,
): IntervalLoop {
  return new IntervalLoop({
    run: () => apiKey && link.connection.setApiKey(apiKey()),
    everyMs: apiKeyEveryMs,
    onError: () => onProblem('the new API key of Temporal could not be set on the connection; tried again in 2 s'),
  });
}
