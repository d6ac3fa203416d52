import pg from 'pg';

/**
 * SQLSTATE classes of a server that is unavailable, full or stopping, and system errors of its connection
 * and of the look-up of its name (`EAI_AGAIN`): the statement is not wrong.
 */
const unavailableCode = /^(?:08|53|57|58)...$|^E(?:AI_)?[A-Z]{3,}$/;

/** The code of a statement that exceeded `statement_timeout`, although it is in class 57. */
const statementTimeout = '57014';

/** Codes of statements that others may have ended: a time limit, a deadlock, a lock, a conflict. */
const transientCode = /^(?:57014|40P01|55P03|40001)$/;

/** Codes of values that a statement or a rule of the database rejected: classes 22, 23 and P0. */
const dataCode = /^(?:22|23|P0)...$/;

/** The code of a write at a server that is not the primary, or no longer. */
export const readOnly = '25006';

/**
 * The code of a connection through a pooler: PgBouncer has it for a connection that asks for parameters,
 * and `PrimaryConnection` for one that did not get them.
 */
export const pooled = '08P01';

/**
 * Codes that hold for every connection to the server: it became read-only, shuts down, crashed, or
 * is starting (57P01 to 57P03).
 */
const leavingCode = /^(?:25006|57P0[123])$/;

/**
 * Messages of `pg` and `pg-pool` for errors that have no code, in full. Everything else is decided by
 * a code.
 */
export const messages = {
  /** No connection became free in time. */
  noFreeConnection: 'timeout exceeded when trying to connect',
  /** No connection could be made in time: the client's limit, and the pool's. */
  connectTimeout: 'timeout expired',
  poolConnectTimeout: 'Connection terminated due to connection timeout',
  /** The server did not answer a statement in time. */
  unanswered: 'Query read timeout',
  /** The connection was lost; or this process ended it, while a statement ran. */
  lost: 'Connection terminated unexpectedly',
  ended: 'Connection terminated',
  /** A statement was sent after that. */
  sentAfterLoss: 'Client has encountered a connection error and is not queryable',
  sentAfterEnd: 'Client was closed and is not queryable',
} as const;

const connectionFailures: ReadonlySet<string> = new Set(Object.values(messages));

const { poolConnectTimeout, lost, ended, sentAfterLoss, sentAfterEnd } = messages;
const closed: ReadonlySet<string> = new Set([poolConnectTimeout, lost, ended, sentAfterLoss, sentAfterEnd]);

/** Returns whether an error says that the connection of a statement is closed. */
export const isConnectionClosed = ({ message }: Error): boolean => closed.has(message);

/** Returns whether a statement took longer than its connection allows. Looks at the causes too. */
export const isStatementTimeout = (error: unknown): boolean =>
  error instanceof Error && (getErrorCode(error) === statementTimeout || isStatementTimeout(error.cause));

/**
 * Returns whether PostgreSQL ended a statement for what other connections may have done, so that the
 * same one may work when it is repeated.
 */
export const isTransient = (error: unknown): boolean => transientCode.test(getErrorCode(error));

/** Returns whether the error says that every connection to this server is of no more use. */
export const leavesServer = (error: unknown): boolean => leavingCode.test(getErrorCode(error));

/**
 * Returns whether PostgreSQL is unavailable, full, stopping, or not the primary, so that the same statement
 * works once the primary is back. Looks at the causes too.
 */
export function isServerUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = getErrorCode(error);
  const isUnavailable =
    code === ''
      ? connectionFailures.has(error.message)
      : code === readOnly || (unavailableCode.test(code) && code !== statementTimeout);
  return isUnavailable || isServerUnavailable(error.cause);
}

/**
 * Codes of a new connection whose login or database PostgreSQL rejects. No statement was sent; the login
 * may be about to be replaced (`followLogin`).
 */
const rejectedLogin = /^(?:28...|3D000)$/;

export const isLoginRejected = (error: unknown): boolean => rejectedLogin.test(getErrorCode(error));

/** Returns whether PostgreSQL answered a statement with an error, and is available: it was rejected or too slow. */
export const isStatementError = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && !isServerUnavailable(error) && !isLoginRejected(error);

/** Returns whether PostgreSQL rejected a statement for a value of it, so that one without may work. */
export const isDataError = (error: unknown): boolean => dataCode.test(getErrorCode(error));

function getErrorCode(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : '';
}
