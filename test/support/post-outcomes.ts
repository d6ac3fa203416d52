import type { Outcome } from '#delivery/post/outcome.ts';

/** The outcome of a post that the receiver answers with 500. */
export const rejectedPost: Outcome = {
  kind: 'failed',
  status: 500,
  cause: 'answered_server_error',
  explanation: 'The receiver failed.',
  timingsMs: { dns: null, connect: null, tls: null, firstByte: null, total: 1 },
  peerAddress: null,
  keptBytes: 0,
  response: Buffer.alloc(0),
  responseEncoding: null,
  rest: null,
  retryAfterSeconds: null,
  isInternalError: false,
};
