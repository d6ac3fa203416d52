import { setTimeout as wait } from 'node:timers/promises';
import { isGrpcServiceError } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { backoffMs } from '#runtime/flow/backoff.ts';
import { createIntervalLoop, type IntervalLoop } from '#runtime/flow/interval-loop.ts';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import { connectionOptions, describeAway, describeRejection, isRejection, rejects } from '#workflows/connection.ts';

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
const grpcNotFound = 5;

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
    const trying = connectOnce(options);
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
async function connectOnce({ server }: ConnectOptions): Promise<NativeConnection | string> {
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
    if (isGrpcServiceError(error) && error.code === grpcNotFound)
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
  return `${describeAway(server)}: start it, or correct TEMPORAL_ADDRESS or the settings of TEMPORAL_TLS`;
}

/** How often an API key that changed in its file is set on the connection. */
const apiKeyEveryMs = 2_000;

/** Keeps the API key of a connection current with its file. */
export function followApiKey(
  connection: NativeConnection,
  { apiKey }: TemporalServer,
  onProblem: (sentence: string) => void,
): IntervalLoop {
  let inUse = apiKey?.();
  return createIntervalLoop({
    async run() {
      const newest = apiKey?.();
      if (newest === undefined || newest === inUse) return;
      await connection.setApiKey(newest);
      inUse = newest;
    },
    everyMs: apiKeyEveryMs,
    onError: () => onProblem('the new API key of Temporal could not be set on the connection; tried again in 2 s'),
  });
}
