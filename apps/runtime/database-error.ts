import pg from 'pg';
import { ApiError } from '#domain/contract/errors.ts';

/**
 * SQLSTATE classes that mean the server is away, full or stopping, rather than that a statement is
 * wrong.
 */
const awayClasses = new Set(['08', '53', '57', '58']);

/**
 * Returns the error that a client gets for a failed statement: `unavailable` when the database did
 * not answer, `internal` when it refused the statement.
 */
export function databaseError(cause: unknown): ApiError {
  const refusedByServer = cause instanceof pg.DatabaseError && !awayClasses.has((cause.code ?? '').slice(0, 2));
  return refusedByServer
    ? new ApiError('internal', 'An internal error occurred.', { cause })
    : new ApiError('unavailable', 'The service cannot answer right now. Try again in a moment.', { cause });
}
