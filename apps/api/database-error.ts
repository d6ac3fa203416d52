import pg from 'pg';
import { ApiError } from '#domain/contract/errors.ts';
import { isServerAway, isStatementTimeout } from '#domain/db/server-away.ts';

/** Returns whether a statement itself was refused or too slow, and not the connection failed. */
export const isStatementError = (cause: unknown): boolean => cause instanceof pg.DatabaseError && !isServerAway(cause);

/**
 * Returns the error that a client gets for a failed statement: `unavailable` when the database did
 * not answer, `internal` when it refused the statement.
 */
export function databaseError(cause: unknown): ApiError {
  return isStatementError(cause) && !isStatementTimeout(cause)
    ? new ApiError('internal', 'An internal error occurred.', { cause })
    : new ApiError('unavailable', 'The service cannot answer right now. Try again in a moment.', { cause });
}
