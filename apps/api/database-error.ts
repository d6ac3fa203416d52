import pg from 'pg';
import { type ApiError, apiError } from '#domain/contract/errors.ts';
import { isServerAway, isStatementTimeout } from '#domain/db/server-away.ts';

/** Returns whether a statement itself was refused or too slow, and not the connection failed. */
export const isStatementError = (cause: unknown): boolean => cause instanceof pg.DatabaseError && !isServerAway(cause);

/**
 * Returns the error that a client gets for a failed statement: `unavailable` when the database did
 * not answer, `internal` when it refused the statement.
 */
export function databaseError(cause: unknown): ApiError {
  return isStatementError(cause) && !isStatementTimeout(cause)
    ? apiError('internal', null, cause)
    : apiError('unavailable', null, cause);
}
