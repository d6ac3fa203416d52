import { type Cause, type PostResult, propertiesOf } from '#domain/webhooks/causes.ts';

export interface KeptResponse {
  /** The length of `response`. */
  keptBytes: number;
  /** The beginning of the response's body as it was sent, at most 16 KiB. */
  response: Buffer;
  /** The encoding that the receiver named although none is accepted; null: the bytes are the text. */
  responseEncoding: string | null;
}

/** The outcome of one post, as the delivery's record stores it. */
export interface Outcome extends KeptResponse {
  /** `not_allowed` and `failed` count as an attempt unless `isInternalError`. */
  kind: PostResult;
  /** From the status line, regardless of what follows it; null when there was none. */
  status: number | null;
  cause: Cause;
  /** What happened and what to do, for the receiver's owner; no part of URL, headers or bodies. */
  explanation: string;
  timingsMs: Timings;
  /** The address that was connected to; null without a connection. */
  peerAddress: string | null;
  /** What is kept in the end, when the response still arrives; it takes a second at most. Never rejects. */
  rest: Promise<KeptResponse> | null;
  /** From `Retry-After` of a 429 or 503, 0 to 86,400; else null. */
  retryAfterSeconds: number | null;
  /** Whether the service could not send. Such an attempt does not count against the receiver. */
  isInternalError: boolean;
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

export const nothingSent: Outcome = {
  ...propertiesOf('internal_error'),
  status: null,
  cause: 'internal_error',
  timingsMs: { dns: null, connect: null, tls: null, firstByte: null, total: 0 },
  peerAddress: null,
  keptBytes: 0,
  response: Buffer.alloc(0),
  responseEncoding: null,
  rest: null,
  retryAfterSeconds: null,
};
