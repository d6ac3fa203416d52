import { type AttemptOutcome, type Cause, getCauseProperties } from '#domain/webhooks/causes.ts';

/** The beginning of a response's body as it was sent, at most 16 KiB. */
export interface KeptBody {
  body: Buffer;
  /** The encoding that the receiver named although none is accepted; null: the bytes are the text. */
  encoding: string | null;
}

/** What one post found, as the attempt's record stores it. */
export interface PostResult extends KeptBody {
  outcome: AttemptOutcome;
  /** From the status line, regardless of what follows it; null when there was none. */
  status: number | null;
  cause: Cause;
  /** What happened and what to do, for the receiver's owner; no part of URL, headers or bodies. */
  explanation: string;
  timingsMs: Timings;
  /** The address that was connected to; null without a connection. */
  peerAddress: string | null;
  /** What is kept in the end, when the response still arrives; it takes a second at most. Never rejects. */
  rest: Promise<KeptBody> | null;
  /** From `Retry-After` of a 429 or 503, 0 to 3,600; else null. */
  retryAfterSeconds: number | null;
}

/** Durations in whole ms, in order; null when a phase was not completed or not needed. */
interface Timings {
  dns: number | null;
  connect: number | null;
  tls: number | null;
  /** From the start of the request to the first byte of the response. */
  firstByte: number | null;
  total: number;
}

export const nothingSent: PostResult = {
  ...getCauseProperties('internal_error'),
  status: null,
  cause: 'internal_error',
  timingsMs: { dns: null, connect: null, tls: null, firstByte: null, total: 0 },
  peerAddress: null,
  body: Buffer.alloc(0),
  encoding: null,
  rest: null,
  retryAfterSeconds: null,
};
