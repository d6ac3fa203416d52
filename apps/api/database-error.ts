import pg from 'pg';
import { ApiError } from '#domain/contract/errors.ts';

/** SQLSTATE classes of a server that is away, full or stopping; the statement is not wrong. */
const awayClasses = new Set(['08', '53', '57', '58']);

/** The code of a statement that exceeded `statement_timeout`, although it is in class 57. */
const queryCanceled = '57014';

/** The code of a write at a standby, to which connections may lead for a while after a failover. */
const readOnly = '25006';

/** Returns whether the server refused to run the statement. */
const isRefused = (cause: unknown): cause is pg.DatabaseError =>
  cause instanceof pg.DatabaseError && cause.code !== readOnly && !awayClasses.has((cause.code ?? '').slice(0, 2));

/** Returns whether a statement itself was refused or too slow, and not the connection failed. */
export const isStatementError = (cause: unknown): boolean =>
  isRefused(cause) || (cause instanceof pg.DatabaseError && cause.code === queryCanceled);

/**
 * Returns the error that a client gets for a failed statement: `unavailable` when the database did
 * not answer, `internal` when it refused the statement.
 */
export function databaseError(cause: unknown): ApiError {
  return isRefused(cause)
    ? new ApiError('internal', 'An internal error occurred.', { cause })
    : new ApiError('unavailable', 'The service cannot answer right now. Try again in a moment.', { cause });
}
