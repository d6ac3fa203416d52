import { isConnectionClosed } from '#domain/db/driver/errors.ts';
import { ClientGoneError, type Ends } from './flow/budget.ts';
import { runWithSignal } from './flow/cancellation.ts';

/**
 * Runs work for a client. When it disconnects, the statement that runs is ended, and no further one
 * begins.
 *
 * @throws ClientGoneError when the work fails because of that.
 */
export async function runForClient<Result>(client: Ends, work: () => Promise<Result>): Promise<Result> {
  const controller = new AbortController();
  const { signal } = controller;
  client.onEnd(() => controller.abort(new ClientGoneError()));
  try {
    return await runWithSignal(signal, work);
  } catch (error) {
    throw isEndedBy(signal, error) ? signal.reason : error;
  }
}

/** Returns whether work failed because of its signal, and for no other reason. */
const isEndedBy = (signal: AbortSignal, error: unknown): boolean =>
  signal.aborted &&
  (error === signal.reason ||
    (error instanceof Error && (isConnectionClosed(error) || isEndedBy(signal, error.cause))));
