/** What a stream says whose reader is gone before its end. */
const ofStreams: ReadonlySet<string> = new Set([
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_UNABLE_TO_PIPE',
]);

/** What a socket says whose other end is gone. */
const ofSockets: ReadonlySet<string> = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT']);

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '');

/**
 * Whether a file's stream ended because its browser hung up, which is no fault. A socket's code
 * says nothing here: the database has sockets too.
 */
export const isClientAbort = (error: unknown): boolean => ofStreams.has(codeOf(error));

/**
 * The same for what Koa could not send: every fault of ours has become a page by then, so the
 * socket is the browser's.
 */
export const isSocketAbort = (error: unknown): boolean => isClientAbort(error) || ofSockets.has(codeOf(error));
