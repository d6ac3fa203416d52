import { endStatementsOn, isEndedBy } from '#domain/db/end-statements.ts';
import { ClientGoneError, type Ends } from './flow/budget.ts';

/**
 * Runs work for a client. When it disconnects, the statement that runs is ended, and no further one
 * begins.
 *
 * @throws ClientGoneError when the work fails because of that.
 */
export async function runForClient<Result>(client: Ends, work: () => Promise<Result>): Promise<Result> {
  const controller = new AbortController();
  client.onEnd(() => controller.abort(new ClientGoneError()));
  try {
    return await endStatementsOn(controller.signal, work);
  } catch (error) {
    throw isEndedBy(controller.signal, error) ? controller.signal.reason : error;
  }
}
