import type { PostResult } from '#delivery/post/result.ts';

/** What a post finds that the receiver answers with 500. */
export const rejectedPost: PostResult = {
  outcome: 'failed',
  status: 500,
  cause: 'answered_server_error',
  explanation: 'The receiver failed.',
  timingsMs: { dns: null, connect: null, tls: null, firstByte: null, total: 1 },
  peerAddress: null,
  body: Buffer.alloc(0),
  encoding: null,
  rest: null,
  retryAfterSeconds: null,
};
