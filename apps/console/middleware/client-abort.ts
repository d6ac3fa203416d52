/** Error codes of a stream whose reader has gone before its end. */
const streamCodes: ReadonlySet<string> = new Set([
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_UNABLE_TO_PIPE',
]);

/** Error codes of a socket whose other end has gone. */
const socketCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT']);

const getErrorCode = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '');

/**
 * Returns whether a file's stream ended because the browser closed the connection. A socket's code
 * proves nothing here, because the database has sockets too.
 */
export const isClientAbort = (error: unknown): boolean => streamCodes.has(getErrorCode(error));

/**
 * Returns the same for what Koa could not send. Internal errors have become pages by then, so the
 * socket is the browser's.
 */
export const isSocketAbort = (error: unknown): boolean => isClientAbort(error) || socketCodes.has(getErrorCode(error));
