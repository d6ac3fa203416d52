import { isGrpcServiceError } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';

export interface ConnectOptions {
  address: string;
  namespace: string;
  /** Ends the trying. */
  signal: AbortSignal;
  /** Told in a sentence, at every try, what keeps it from connecting and what to do. */
  onProblem: (sentence: string) => void;
}

const tryTimeoutMs = 5_000;
const firstWaitMs = 250;
const longestWaitMs = 5_000;
const grpcNotFound = 5;

/**
 * Connects to Temporal and tries again until it answers for the namespace: the two are started together, and which comes first is chance. A development server answers
 * before it has made its namespaces, hence the question after one. Null once `signal` aborts.
 */
export async function connectToTemporal(options: ConnectOptions): Promise<NativeConnection | null> {
  const { signal, onProblem } = options;
  const aborted = new Promise<null>((resolve) => {
    if (signal.aborted) resolve(null);
    else signal.addEventListener('abort', () => resolve(null), { once: true });
  });
  for (let waitMs = firstWaitMs; !signal.aborted; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
    const trying = connectOnce(options);
    const result = await Promise.race([trying, aborted]);
    if (result === null) {
      void trying.then((late) => (typeof late === 'string' ? undefined : late.close())).catch(() => {});
      return null;
    }
    if (typeof result !== 'string') return result;
    onProblem(`${result}; tried again in ${waitMs / 1000} s`);
    await Promise.race([new Promise((resolve) => setTimeout(resolve, waitMs).unref()), aborted]);
  }
  return null;
}

/** A connection, or what is wrong. */
async function connectOnce({ address, namespace }: ConnectOptions): Promise<NativeConnection | string> {
  const connection = await connect(address);
  if (connection === null) return `Temporal does not answer at ${address}: start it, or correct TEMPORAL_ADDRESS`;
  try {
    await connection.withDeadline(Date.now() + tryTimeoutMs, () =>
      connection.workflowService.describeNamespace({ namespace }),
    );
    return connection;
  } catch (error) {
    await connection.close();
    if (isGrpcServiceError(error) && error.code === grpcNotFound)
      return `Temporal at ${address} has no namespace ${namespace}: make it (temporal operator namespace create --namespace ${namespace}), or correct TEMPORAL_NAMESPACE`;
    return `Temporal at ${address} does not answer for the namespace ${namespace}: see whether it is healthy and lets the worker in`;
  }
}

/** Null when there is none in time; one that comes later is closed. */
async function connect(address: string): Promise<NativeConnection | null> {
  const connecting = NativeConnection.connect({ address }).catch(() => null);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), tryTimeoutMs);
  });
  const result = await Promise.race([connecting, late]);
  clearTimeout(timer);
  if (result !== 'late') return result;
  void connecting.then((connection) => connection?.close()).catch(() => {});
  return null;
}
