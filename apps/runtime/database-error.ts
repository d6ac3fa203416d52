import pg from 'pg';
import { ApiError } from '#domain/contract/errors.ts';

/**
 * SQLSTATE classes that mean the server is away, full or stopping, rather than that a statement of
 * ours is wrong.
 */
const awayClasses = new Set(['08', '53', '57', '58']);

/**
 * What a failed statement is to the client: `unavailable` when the database could not be asked,
 * `internal` when it refused the statement.
 */
export function databaseFault(cause: unknown): ApiError {
  const refusedByServer = cause instanceof pg.DatabaseError && !awayClasses.has((cause.code ?? '').slice(0, 2));
  return refusedByServer
    ? new ApiError('internal', 'Something went wrong on our side.', { cause })
    : new ApiError('unavailable', 'The service cannot answer right now. Try again in a moment.', { cause });
}
