import { wholeNumber } from './types.ts';

/** Settings that bound what clients hold of a server. */
export const boundSettings = (defaults: { answerDeadlineSeconds: number }) => ({
  MAX_CONNECTIONS: wholeNumber(10, 100_000)
    .default(2_000)
    .describe('Connections at a time. Further ones are refused, and idle ones are closed to make room.'),
  ANSWER_DEADLINE_SECONDS: wholeNumber(1, 86_400)
    .default(defaults.answerDeadlineSeconds)
    .describe('Seconds from a request to the last byte of its answer. Then the connection is cut.'),
  ANSWER_MIN_BYTES_PER_SECOND: wholeNumber(1, 1_000_000_000)
    .default(16_384)
    .describe(
      'Bytes per second that a client must take while an answer waits for it. A slower connection is cut after 10 s.',
    ),
});

/** The same, as `startServer` takes them. */
export const boundsOf = (settings: {
  MAX_CONNECTIONS: number;
  ANSWER_DEADLINE_SECONDS: number;
  ANSWER_MIN_BYTES_PER_SECOND: number;
}) => ({
  maxConnections: settings.MAX_CONNECTIONS,
  answerDeadlineMs: settings.ANSWER_DEADLINE_SECONDS * 1_000,
  minBytesPerSecond: settings.ANSWER_MIN_BYTES_PER_SECOND,
});
